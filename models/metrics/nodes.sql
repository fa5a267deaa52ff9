/* ---
about: Nodes of the clusters of job traces that publish them. Of a trace with several lists of nodes, the default list.
materialize: view
grain: [trace, cluster, node]
columns:
  trace: VARCHAR the trace, by the name of its mapping
  cluster: VARCHAR the cluster
  node: VARCHAR the node
  num_gpus: BIGINT [1] GPUs; 0 for a node without
  gpu_model: VARCHAR model of the GPUs; NULL without GPUs
  num_cpus: DECIMAL(12, 3) [1] CPUs
  memory_bytes: BIGINT [B] memory
  extra: VARCHAR other columns that the mapping keeps, as a JSON object
dimensions: [trace, cluster, node, gpu_model]
measures:
  num_gpus, num_cpus: sum
  memory_bytes: sum, shown in TB
sources: docs/traces.md
--- */
SELECT
    trace,
    cluster,
    node,
    num_gpus,
    gpu_model,
    num_cpus,
    memory_bytes,
    extra
FROM staging.trace_nodes
WHERE variant = 'default'

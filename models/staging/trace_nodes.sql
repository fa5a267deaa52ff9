/* ---
about: 'Nodes of the clusters of job traces, by the mappings of data/traces. Lists that repeat each other are variants: count one of them alone.'
grain: [trace, cluster, variant, node]
columns:
  trace: VARCHAR the trace, by the name of its mapping
  cluster: VARCHAR the cluster
  variant: VARCHAR list of nodes, where a trace has several; default for the one that counts
  node: VARCHAR the node
  num_gpus: BIGINT [1] GPUs; 0 for a node without
  gpu_model: VARCHAR model of the GPUs; NULL without GPUs
  num_cpus: DECIMAL(12, 3) [1] CPUs
  memory_bytes: BIGINT [B] memory
  extra: VARCHAR other columns that the mapping keeps, as a JSON object
checks:
  - num_gpus >= 0 or num_gpus is null
sources: docs/traces.md
--- */
SELECT
    trace,
    cluster,
    variant,
    node,
    num_gpus,
    gpu_model,
    num_cpus,
    memory_bytes,
    extra
FROM ({{ mapped('nodes') }})

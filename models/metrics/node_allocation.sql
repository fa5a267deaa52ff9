/* ---
about: GPUs in use on each node, from one change to the next, for traces that publish nodes and say where jobs ran.
materialize: view
grain: [trace, cluster, node, begin_seconds]
columns:
  trace: VARCHAR the trace
  cluster: VARCHAR the cluster
  node: VARCHAR the node
  gpu_model: VARCHAR model of its GPUs
  begin_seconds: BIGINT [s] when it begins, from the origin of the trace; since 1970 where it has clock times
  end_seconds: BIGINT [s] when the next change comes; NULL after the last one
  node_gpus: BIGINT [1] GPUs of the node
  gpus: DECIMAL(20, 3) [1] GPUs that jobs hold
  sharing_jobs: BIGINT [1] jobs with a part of one GPU
  allocation_share: DOUBLE [1] gpus / node_gpus
dimensions: [trace, cluster, node, gpu_model]
measures:
  others: none
sources: docs/metrics/capacity.md
--- */
SELECT
    trace,
    cluster,
    node,
    gpu_model,
    begin_seconds,
    end_seconds,
    node_gpus,
    gpus,
    sharing_jobs,
    gpus / node_gpus AS allocation_share
FROM staging.node_use
WHERE node <> 'all'

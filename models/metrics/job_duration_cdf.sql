/* ---
about: Number and GPU time of a cluster's jobs that last at most 1, 2, 4 .. 2^21 seconds, for all jobs and for each type.
grain: [trace, cluster, kind, job_type, basis, up_to_seconds]
columns:
  trace: VARCHAR acme, itp, helios, philly or pai
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  job_type: VARCHAR Eval, Pretrain and so on; the value all means every type
  basis: VARCHAR published (duration as published) or run (end - start)
  up_to_seconds: BIGINT [s] a power of two
  jobs: BIGINT [1] jobs that last at most up_to_seconds
  job_share: DOUBLE [1] share of all jobs of this kind and type, including jobs without a duration
  gpu_seconds: DOUBLE [s] GPU time of these jobs on the same basis
  gpu_time_share: DOUBLE [1] share of the GPU time of all jobs of this kind and type
measures:
  jobs: sum except over kind, job_type, basis, up_to_seconds
  gpu_seconds: sum except over kind, job_type, basis, up_to_seconds, shown in h
  job_share, gpu_time_share: none, shown in %
checks:
  - kind in ('gpu', 'cpu')
  - basis in ('published', 'run')
  - job_share between 0 and 1
sources: docs/metrics/jobs.md
--- */
SELECT
    trace,
    cluster,
    kind,
    job_type,
    basis,
    up_to_seconds,
    jobs,
    jobs / all_jobs AS job_share,
    gpu_seconds::DOUBLE AS gpu_seconds,
    gpu_seconds::DOUBLE / nullif(all_gpu_seconds, 0)::DOUBLE AS gpu_time_share
FROM staging.job_spans
WHERE basis <> 'queue'

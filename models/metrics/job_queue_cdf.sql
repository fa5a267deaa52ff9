/* ---
about: Number of a cluster's jobs that waited at most 1, 2, 4 .. 2^21 seconds, by the published queue time, for all jobs and for each type.
grain: [trace, cluster, kind, job_type, up_to_seconds]
columns:
  trace: VARCHAR acme, helios, philly or pai; ITP has no start times
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  job_type: VARCHAR Eval, Pretrain and so on; the value all means every type
  up_to_seconds: BIGINT [s] a power of two
  jobs: BIGINT [1] jobs that waited at most up_to_seconds
  job_share: DOUBLE [1] share of all jobs of this kind and type, including jobs without a published queue
measures:
  jobs: sum except over job_type, up_to_seconds
  job_share: none, shown in %
checks:
  - kind in ('gpu', 'cpu')
  - job_share between 0 and 1
sources: docs/metrics/jobs.md
--- */
SELECT
    trace,
    cluster,
    kind,
    job_type,
    up_to_seconds,
    jobs,
    jobs / all_jobs AS job_share
FROM staging.job_spans
WHERE basis = 'queue'

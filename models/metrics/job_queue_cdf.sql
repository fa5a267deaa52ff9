/* ---
about: How many of a cluster's jobs waited at most 1, 2, 4 .. 2^21 seconds, by the queue as published; of all jobs and of each type.
grain: [trace, cluster, kind, job_type, up_to_seconds]
columns:
  trace: VARCHAR acme, helios, philly or pai; ITP has no start
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  job_type: VARCHAR Eval, Pretrain and so on; all for the jobs of every type
  up_to_seconds: BIGINT [s] a power of two
  jobs: BIGINT [1] jobs that waited at most so long
  job_share: DOUBLE [1] of all jobs of this kind and type, those without a published queue included
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

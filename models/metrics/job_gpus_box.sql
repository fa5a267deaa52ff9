/* ---
about: 'GPUs requested by jobs of each type, as in a box plot: quartiles, and whiskers to the outermost job within 1.5 interquartile ranges. Jobs without GPUs count, too.'
grain: [trace, cluster, job_type]
columns:
  trace: VARCHAR acme, the only trace with job types
  cluster: VARCHAR the cluster
  job_type: VARCHAR Eval, Pretrain and so on, as published; `none` where it is blank
  jobs: BIGINT [1] jobs that state their GPUs
  smallest: DOUBLE [1] smallest number of GPUs
  whisker_low: DOUBLE [1] smallest number of GPUs that is at least q1 - 1.5 (q3 - q1)
  q1: DOUBLE [1] first quartile, interpolated between jobs
  median: DOUBLE [1] median, interpolated between jobs
  q3: DOUBLE [1] third quartile, interpolated between jobs
  whisker_high: DOUBLE [1] largest number of GPUs that is at most q3 + 1.5 (q3 - q1)
  largest: DOUBLE [1] largest number of GPUs
measures:
  jobs: sum
  smallest: min
  largest: max
  others: none
checks:
  - whisker_low <= q1 and q1 <= median and median <= q3 and q3 <= largest
sources: docs/metrics/jobs.md
--- */
WITH typed AS (
    SELECT
        trace,
        cluster,
        coalesce(job_type, 'none') AS job_type,
        num_gpus
    FROM staging.job_sizes
    WHERE trace = 'acme' AND num_gpus IS NOT NULL
),

quartiles AS (
    SELECT
        trace,
        cluster,
        job_type,
        count(*) AS jobs,
        min(num_gpus) AS smallest,
        quantile_cont(num_gpus, 0.25) AS q1,
        quantile_cont(num_gpus, 0.5) AS median,
        quantile_cont(num_gpus, 0.75) AS q3,
        max(num_gpus) AS largest,
        list(DISTINCT num_gpus ORDER BY num_gpus) AS sizes
    FROM typed
    GROUP BY ALL
)

SELECT
    trace,
    cluster,
    job_type,
    jobs,
    smallest,
    list_min(list_filter(sizes, LAMBDA n: n >= q1 - 1.5e0 * (q3 - q1))) AS whisker_low,
    q1,
    median,
    q3,
    list_max(list_filter(sizes, LAMBDA n: n <= q3 + 1.5e0 * (q3 - q1))) AS whisker_high,
    largest
FROM quartiles

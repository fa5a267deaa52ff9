/* ---
about: 'Deadline tightness in ElasticFlow''s traces: time to the deadline over the job''s duration. Values were drawn between 0.5 and 1.5, so many jobs miss the deadline even if they start at once.'
grain: [cluster]
columns:
  cluster: VARCHAR cluster01 to cluster10, or testbed
  jobs: BIGINT [1] jobs
  raw_jobs: BIGINT [1] jobs that are also in ITP's own trace with the same submission, duration and GPUs
  smallest: DOUBLE [1] smallest tightness, (deadline - submission) / duration
  median: DOUBLE [1] median tightness
  mean: DOUBLE [1] mean tightness
  largest: DOUBLE [1] largest tightness
  before_end: BIGINT [1] jobs whose deadline is before submission + duration
measures:
  jobs, raw_jobs, before_end: sum
  smallest: min
  largest: max
  others: none
checks:
  - smallest > 0
sources: docs/metrics/jobs.md
--- */
WITH listed AS (
    SELECT * FROM staging.elasticflow_jobs
    UNION ALL BY NAME
    SELECT 'testbed' AS cluster, *
    FROM staging.testbed_jobs
),

measured AS (
    SELECT
        b.*,
        i.job_id IS NOT NULL AS is_raw,
        (b.deadline_seconds - b.submission_seconds) / nullif(b.duration_seconds, 0) AS tightness
    FROM listed AS b
    LEFT JOIN staging.itp_jobs AS i
        ON
            i.job_id = b.job_id AND i.submission_seconds = b.submission_seconds
            AND i.duration_seconds = b.duration_seconds AND i.num_gpus = b.num_gpus
            AND (i.cluster = b.cluster OR b.cluster = 'testbed')
)

SELECT
    cluster,
    count(*) AS jobs,
    count(*) FILTER (WHERE is_raw) AS raw_jobs,
    min(tightness) AS smallest,
    median(tightness) AS median,
    sum(tightness::DECIMAL(18, 9))::DOUBLE / count(tightness) AS mean,
    max(tightness) AS largest,
    count(*) FILTER (WHERE deadline_seconds < submission_seconds + duration_seconds) AS before_end
FROM measured
GROUP BY cluster

/* ---
about: Deadline tightness in ElasticFlow's traces, the time to the deadline over the job's duration. Values were drawn between 0.5 and 1.5, so many jobs miss the deadline even if they start at once.
question: How long do jobs run and wait?
--- */
-- testbed: 195 jobs, a part of cluster02
-- raw_jobs: jobs that are also in ITP's own trace with the same submission, duration and GPUs
-- before_end: jobs whose deadline is before submission + duration
WITH listed AS (
    SELECT cluster, job_id, submission_seconds, duration_seconds, num_gpus, deadline_seconds
    FROM staging.elasticflow_jobs
    UNION ALL
    SELECT 'testbed', job_id, submission_seconds, duration_seconds, num_gpus, deadline_seconds
    FROM staging.testbed_jobs
), measured AS (
    SELECT e.*, i.job_id IS NOT NULL AS is_raw,
        (e.deadline_seconds - e.submission_seconds) / nullif(e.duration_seconds, 0) AS tightness
    FROM listed AS e
    LEFT JOIN staging.itp_jobs AS i
        ON i.job_id = e.job_id AND i.submission_seconds = e.submission_seconds AND i.duration_seconds = e.duration_seconds
            AND i.num_gpus = e.num_gpus AND (i.cluster = e.cluster OR e.cluster = 'testbed')
)
SELECT cluster, count(*) AS jobs, count(*) FILTER (is_raw) AS raw_jobs, min(tightness) AS smallest, median(tightness) AS median,
    sum(tightness::DECIMAL(18, 9))::DOUBLE / count(tightness) AS mean, max(tightness) AS largest,
    count(*) FILTER (deadline_seconds < submission_seconds + duration_seconds) AS before_end
FROM measured
GROUP BY cluster
ORDER BY cluster

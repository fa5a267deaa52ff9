/* ---
about: 'Types of the GPU jobs of Seren and Kalos: jobs, GPU time, and the queueing times of 50 % and 95 % of jobs.'
question: How long do jobs run and wait?
params:
  cluster: VARCHAR = null only this cluster
--- */
-- job_percent: of the cluster's GPU jobs
-- gpu_time_percent: of the GPU time of all these jobs
WITH waits AS (
    SELECT cluster, job_type, min(up_to_seconds) FILTER (WHERE job_share >= 0.5) AS half_wait_seconds,
        min(up_to_seconds) FILTER (WHERE job_share >= 0.95) AS most_wait_seconds
    FROM metrics.job_time_cdf
    WHERE kind = 'gpu' AND quantity = 'queue'
    GROUP BY cluster, job_type
)
SELECT t.cluster, t.name AS job_type, t.jobs, round(100 * t.job_share, 2) AS job_percent,
    round(100 * t.gpu_time_share, 2) AS gpu_time_percent, w.half_wait_seconds, w.most_wait_seconds
FROM metrics.job_share AS t
LEFT JOIN waits AS w ON w.cluster = t.cluster AND w.job_type = t.name
WHERE t.kind = 'gpu' AND t.quantity = 'job_type' AND ($cluster IS NULL OR t.cluster = $cluster)
ORDER BY t.cluster, t.gpu_time_share DESC, t.name

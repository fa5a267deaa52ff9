/* ---
about: 'How long GPU jobs last, as published: the share of jobs that last at most so long.'
--- */
SELECT
    trace,
    cluster,
    up_to_seconds,
    jobs,
    round(100 * job_share, 2) AS jobs_percent,
    round(100 * gpu_time_share, 2) AS gpu_time_percent
FROM metrics.job_duration_cdf
WHERE kind = 'gpu' AND job_type = 'all' AND basis = 'published'
ORDER BY trace, cluster, up_to_seconds

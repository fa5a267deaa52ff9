/* ---
about: 'What kinds of work jobs are: shares of GPU jobs and of their GPU time.'
--- */
SELECT
    trace,
    cluster,
    coalesce(job_type, 'none') AS type,
    jobs,
    round(100 * job_share, 2) AS jobs_percent,
    round(100 * gpu_time_share, 2) AS gpu_time_percent,
    row_number() OVER (ORDER BY gpu_time_share DESC NULLS LAST, trace, cluster, job_type) AS place
FROM metrics.job_type_share
WHERE kind = 'gpu'
ORDER BY trace, cluster, jobs DESC, type

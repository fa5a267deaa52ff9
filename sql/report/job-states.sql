/* ---
about: 'How jobs end: shares of GPU jobs and of their GPU time.'
--- */
SELECT
    trace,
    cluster,
    coalesce(state, 'none') AS state,
    jobs,
    round(100 * job_share, 2) AS jobs_percent,
    round(100 * gpu_time_share, 2) AS gpu_time_percent,
    row_number() OVER (ORDER BY gpu_time_share DESC NULLS LAST, trace, cluster, state) AS place
FROM metrics.job_state_share
WHERE kind = 'gpu'
ORDER BY trace, cluster, jobs DESC, state

/* ---
about: 'How many GPUs jobs ask for: the share of jobs and of GPU time up to each size.'
--- */
SELECT
    trace,
    cluster,
    num_gpus,
    jobs,
    round(100 * job_share_up_to, 2) AS jobs_percent,
    round(100 * gpu_time_share_up_to, 2) AS gpu_time_percent,
    row_number() OVER (ORDER BY job_share_up_to DESC NULLS LAST, trace, cluster, num_gpus) AS place
FROM metrics.job_size_share
WHERE num_gpus > 0
ORDER BY trace, cluster, num_gpus

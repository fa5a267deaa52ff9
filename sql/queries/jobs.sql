/* ---
about: Number, median run time, size and median queueing time of each cluster's jobs; GPU time in hours. ITP publishes neither queueing nor start times.
question: How long do jobs run and wait?
aliases: [job-wait, wait, queueing]
params:
  trace: VARCHAR = null only this trace, as acme or itp
answer: [trace, cluster, kind, jobs, run_seconds, wait_seconds, mean_gpus, gpu_hours]
--- */
SELECT trace, cluster, kind, jobs, round(gpu_seconds / 3600, 1) AS gpu_hours, median_run_seconds AS run_seconds,
    median_queue_seconds AS wait_seconds, round(mean_gpus, 2) AS mean_gpus, max_gpus, running_jobs AS running,
    round(published_gpu_seconds / 3600, 1) AS published_gpu_hours
FROM metrics.job_totals
WHERE $trace IS NULL OR trace = $trace
ORDER BY trace, cluster, kind DESC

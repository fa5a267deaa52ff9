/* ---
about: How many jobs each cluster ran, for how long, of what size and after what wait; GPU time in hours.
params:
  trace: VARCHAR = null only this trace, as acme or itp
--- */
SELECT trace, cluster, kind, jobs, round(gpu_seconds / 3600, 1) AS gpu_hours, median_run_seconds AS median_run,
    median_queue_seconds AS median_wait, round(mean_gpus, 2) AS mean_gpus, max_gpus, running_jobs AS running,
    round(published_gpu_seconds / 3600, 1) AS published_gpu_hours
FROM metrics.job_totals
WHERE $trace IS NULL OR trace = $trace
ORDER BY trace, cluster, kind DESC

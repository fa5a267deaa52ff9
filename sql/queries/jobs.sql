/* ---
about: Number, run time, size and queueing time of each cluster's jobs; GPU time in hours.
question: How long do jobs run and wait?
aliases: [job-wait, wait, queueing]
params:
  trace: VARCHAR = null only this trace, as acme or itp
answer: [trace, cluster, kind, jobs, median_run, median_wait, mean_gpus, gpu_hours]
unknown:
  median_wait: the trace publishes neither queueing nor start times (ITP), so queueing times are unknown
  median_run: the trace publishes no durations
empty: ITP publishes neither queueing nor start times, so the waiting times of its jobs are unknown when it is loaded, too
--- */
SELECT trace, cluster, kind, jobs, round(gpu_seconds / 3600, 1) AS gpu_hours, median_run_seconds AS median_run,
    median_queue_seconds AS median_wait, round(mean_gpus, 2) AS mean_gpus, max_gpus, running_jobs AS running,
    round(published_gpu_seconds / 3600, 1) AS published_gpu_hours
FROM metrics.job_totals
WHERE $trace IS NULL OR trace = $trace
ORDER BY trace, cluster, kind DESC

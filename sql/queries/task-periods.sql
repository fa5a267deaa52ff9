/* ---
about: Iteration time of a training task, by its log and by the traffic of its servers.
question: Who trains together, over which ports, how much?
params:
  task: VARCHAR = null the task's folder; default all tasks
answer: [task, server, iterations, log_seconds, traffic_seconds, difference, status]
--- */
-- difference: traffic_seconds, times the pulses per iteration, over log_seconds, less 1
SELECT
    task,
    server,
    iterations,
    round(iteration_p50_seconds, 3) AS log_seconds,
    round(period_seconds, 3) AS traffic_seconds,
    round(difference_ratio, 5) AS difference,
    pulses_per_iteration,
    dated_iterations,
    round(scatter_seconds, 2) AS scatter_seconds,
    status,
    hour_utc,
    pod,
    cluster
FROM metrics.task_periods
WHERE task = coalesce($task, task)
ORDER BY cluster, task, server, hour_utc

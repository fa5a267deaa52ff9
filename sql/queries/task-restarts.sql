/* ---
about: Restarts of training tasks, with the iterations and the time that each one cost, and the reason by the log.
question: Who trains together, over which ports, how much?
aliases: [restarts, crashes]
params:
  task: VARCHAR = null the task's folder; default all tasks
answer: [task, after_iteration, lost_iterations, down_seconds, reason]
--- */
-- lost_iterations: iterations with a line before the restart that were computed again
-- down_seconds: time from the last line before the restart to the start of training after it
SELECT task, after_iteration, lost_iterations, down_seconds, reason, restarts, start_utc, end_utc,
    file || ':' || line AS log_line, pod, cluster
FROM metrics.task_restarts
WHERE task = coalesce($task, task)
ORDER BY cluster, task, after_iteration

/* ---
about: The checkpoints of a task, and the time that each cost.
params:
  cluster: VARCHAR the cluster
  task: VARCHAR the task
--- */
SELECT iteration, start_utc, round(extra_seconds, 2) AS extra_seconds
FROM metrics.task_checkpoints
WHERE cluster = $cluster AND task = $task
ORDER BY iteration

/* ---
about: The checkpoints of a task, and the time that each cost.
params:
  cluster: VARCHAR the cluster
  task: VARCHAR the task
--- */
SELECT
    c.iteration,
    c.start_utc,
    round(c.extra_seconds, 2) AS extra_seconds,
    row_number() OVER (ORDER BY c.extra_seconds DESC NULLS LAST, c.iteration) AS place
FROM metrics.task_checkpoints AS c
WHERE c.cluster = $cluster AND c.task = $task
ORDER BY c.iteration

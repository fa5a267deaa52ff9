/* ---
about: How long the iterations of a task took, in at most 300 steps.
params:
  cluster: VARCHAR the cluster
  task: VARCHAR the task
--- */
WITH steps AS (
    SELECT iteration, seconds, loss, iteration // greatest(1, ceil(max(iteration) OVER () / 300)::BIGINT) AS step
    FROM metrics.task_iterations
    WHERE cluster = $cluster AND task = $task AND seconds IS NOT NULL
)
SELECT
    min(iteration) AS iteration,
    count(*) AS iterations,
    round(median(seconds), 3) AS median_seconds,
    round(max(seconds), 3) AS longest_seconds,
    round(median(loss), 4) AS loss,
    row_number() OVER (ORDER BY max(seconds) DESC, min(iteration)) AS place
FROM steps
GROUP BY step
ORDER BY iteration

/* ---
about: 'Checkpoints of a training task and their cost: the extra time until the next iteration line.'
grain: [cluster, task, iteration]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  iteration: BIGINT [1] iteration after which the checkpoint was written
  start_utc: TIMESTAMP time of the first line about the checkpoint, else the end of the iteration
  end_utc: TIMESTAMP time of the last pod's line that the checkpoint is complete; NULL where no line with a time says so
  extra_seconds: DOUBLE [s] time from this iteration's line to the next one, minus the median iteration; NULL where the task was restarted in between
  pod: VARCHAR pod of the first line
  line: INTEGER [1] line number in that pod's log
time: start_utc
dimensions: [cluster, task, iteration, pod]
measures:
  extra_seconds: sum
  line: none
checks:
  - warn: extra_seconds > 0 or extra_seconds is null
    says: "{task}: the checkpoint after iteration {iteration:,} shows no cost: the next line came {extra_seconds:.2f} s later than usual"
sources: docs/metrics/tasks.md
--- */
WITH said AS (
    SELECT
        cluster,
        task,
        step AS iteration,
        min(time_utc) FILTER (WHERE kind = 'checkpoint_start') AS start_utc,
        max(time_utc) FILTER (WHERE kind = 'checkpoint_end') AS end_utc,
        min(pod) FILTER (WHERE kind = 'checkpoint_start') AS pod,
        arg_min(line, (pod, segment)) FILTER (WHERE kind = 'checkpoint_start') AS line
    FROM staging.log_events
    WHERE kind IN ('checkpoint_start', 'checkpoint_end') AND step >= 1
    GROUP BY cluster, task, step
),

usual AS (
    SELECT cluster, task, median(seconds) AS p50_seconds
    FROM metrics.task_iterations
    GROUP BY cluster, task
),

steps AS (                     -- the line after each iteration's, of the pod whose lines count; the last time that no restart came between
    SELECT
        cluster,
        task,
        iteration_before AS iteration,
        arg_max(epoch_us(end_utc) - epoch_us(end_before_utc), (segment, end_utc)) AS microseconds
    FROM metrics.task_lines
    WHERE is_counted AND restart IS NULL AND iteration = iteration_before + 1
    GROUP BY cluster, task, iteration_before
)

SELECT
    c.cluster,
    c.task,
    c.iteration,
    coalesce(c.start_utc, i.end_utc) AS start_utc,
    c.end_utc,
    (a.microseconds - CAST(round(u.p50_seconds * 1e6) AS BIGINT)) / 1e6 AS extra_seconds,
    c.pod,
    c.line
FROM said AS c
LEFT JOIN metrics.task_iterations AS i USING (cluster, task, iteration)  -- once
LEFT JOIN steps AS a USING (cluster, task, iteration)  -- once
LEFT JOIN usual AS u USING (cluster, task)  -- once

/* ---
about: 'Crashes and other restarts of a training task: the iteration before, the iterations that were lost, the time without training, and the reason.'
grain: [cluster, task, after_iteration]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  after_iteration: BIGINT [1] last iteration with a line before the restart
  restarts: BIGINT [1] restarts after this iteration, more than one where the task came no further in between
  lost_iterations: BIGINT [1] iterations with a line before the restart that were computed again
  down_seconds: DOUBLE [s] time from that line to the start of training, else to the start of the next line's iterations; NULL without times
  reason: VARCHAR text of the first error, at most 200 characters, else the rule, start of training or step back
  start_utc: TIMESTAMP time of the last line before the restart
  end_utc: TIMESTAMP end of down_seconds
  pod: VARCHAR pod whose log shows the reason
  file: VARCHAR that log
  line: INTEGER [1] line number in that log
time: start_utc
dimensions: [cluster, task, pod, reason]
measures:
  restarts, lost_iterations: sum
  down_seconds: sum
  others: none
checks:
  - lost_iterations >= 0 and lost_iterations <= after_iteration * restarts
  - down_seconds >= 0 or down_seconds is null
  - restarts >= 1
sources: docs/metrics/tasks.md
--- */
WITH apart AS (                -- usual number of iterations from line to line
    SELECT cluster, task, min(iteration - iteration_before) AS interval
    FROM metrics.task_lines
    WHERE iteration > iteration_before
    GROUP BY cluster, task
),

lines AS (                     -- the first line after each restart, with the iterations that it covers
    SELECT l.*, least(l.iteration, coalesce(a.interval, 1)) AS covers
    FROM metrics.task_lines AS l
    LEFT JOIN apart AS a USING (cluster, task)  -- once
    WHERE l.is_counted AND l.restart IS NOT NULL
),

timed AS (
    SELECT
        *,
        epoch_us(coalesce(
            resumed_utc,
            CASE
                WHEN family IN ('megatron', 'lightning') AND elapsed_seconds IS NULL AND seconds IS NOT NULL
                    THEN end_utc - seconds * covers * INTERVAL '1 second'
            END,
            end_utc
        )) AS resumed_us
    FROM lines
)

SELECT
    cluster,
    task,
    iteration_before AS after_iteration,
    sum(restarts) AS restarts,
    sum(greatest(iteration_before - iteration + covers, 0)) AS lost_iterations,
    sum(CASE WHEN resumed_us >= epoch_us(end_before_utc) THEN resumed_us - epoch_us(end_before_utc) END) / 1e6 AS down_seconds,
    arg_min(restart, (segment, restart_file, restart_line)) AS reason,
    min(end_before_utc) AS start_utc,
    max(make_timestamp(resumed_us)) AS end_utc,
    arg_min(restart_pod, (segment, restart_file, restart_line)) AS pod,
    arg_min(restart_file, (segment, restart_file, restart_line)) AS file,
    arg_min(restart_line, (segment, restart_file, restart_line)) AS line
FROM timed
GROUP BY cluster, task, iteration_before

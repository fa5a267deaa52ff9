/* ---
about: 'Every iteration of a training task once, timed by its lines in the log of one pod: the pod with the lowest ranks that prints such lines.'
grain: [cluster, task, iteration]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  iteration: BIGINT [1] number of the iteration, from 1
  start_utc: TIMESTAMP end_utc minus seconds
  end_utc: TIMESTAMP time of its line; for a progress bar, start of training plus the elapsed time that the bar shows; else NULL
  seconds: DOUBLE [s] time from the previous line to its own, for the first line and after a restart from the start of training; a mean where iterations_covered is above 1
  iterations_covered: BIGINT [1] iterations that its line covers; seconds is their mean
  seconds_source: VARCHAR stamps (timestamps of lines), log (as printed) or clock (whole seconds of progress bars)
  evidence: VARCHAR log (a line of a known trainer) or generic (a line that only looks like one of a trainer)
  tokens: BIGINT [1] tokens of one iteration, samples x sequence length
  loss: DOUBLE [1] loss as printed
  learning_rate: DOUBLE [1] learning rate as printed
  pods: BIGINT [1] pods with a line about the iteration
  pod_skew_seconds: DOUBLE [s] latest minus earliest time of these lines
  first_missing: BIGINT [1] first iteration without a line between the previous line and this one; NULL where none is missing
  pod: VARCHAR pod whose line is used
  line: INTEGER [1] line number in that pod's log
time: end_utc
dimensions: [cluster, task, iteration, pod]
measures:
  seconds: mean except over task
  tokens: sum
  loss, learning_rate: mean except over task
  pod_skew_seconds: max
  others: none
checks:
  - seconds > 0 or seconds is null
  - pod_skew_seconds >= 0 or pod_skew_seconds is null
  - evidence in ('log', 'generic')
  - seconds_source in ('stamps', 'log', 'clock') or seconds_source is null
  - warn: pod_skew_seconds < 60 or pod_skew_seconds is null
    says: "{task}, iteration {iteration:,}: its {pods} pods wrote their lines {pod_skew_seconds:.1f} s apart (a minute or more)"
  - warn: "none: SELECT task, first_missing, iteration - 1 AS last_missing FROM this WHERE first_missing IS NOT NULL"
    says: "{task}: no line tells iterations {first_missing:,} to {last_missing:,}"
sources: docs/metrics/tasks.md
--- */
WITH apart AS (                -- usual number of iterations from line to line
    SELECT cluster, task, min(iteration - iteration_before) AS interval
    FROM metrics.task_lines
    WHERE iteration > iteration_before
    GROUP BY cluster, task
),

timed AS (                     -- a line is timed from the previous line, after a restart from the start of training
    SELECT
        *,
        restart IS NULL AND iteration > iteration_before AND coalesce(start_segment < segment_before, true) AS goes_on,
        segment_before IS NULL OR start_segment > segment_before AS is_after_start
    FROM metrics.task_lines
    LEFT JOIN apart USING (cluster, task)  -- once
    QUALIFY row_number() OVER (PARTITION BY cluster, task, pod, iteration ORDER BY segment DESC, item DESC) = 1
),

across AS (
    SELECT
        cluster,
        task,
        iteration,
        count(DISTINCT pod) AS pods,
        CASE WHEN count(time_utc) > 1 THEN (max(epoch_us(time_utc)) - min(epoch_us(time_utc))) / 1e6 END AS pod_skew_seconds
    FROM timed
    GROUP BY cluster, task, iteration
),

measured AS (
    SELECT
        *,
        CASE
            WHEN goes_on THEN iteration - iteration_before
            WHEN iteration <= 1 THEN 1
            WHEN coalesce(start_segment < segment_before, false) THEN NULL
            WHEN interval IS NOT NULL OR start_utc IS NOT NULL THEN least(iteration, coalesce(interval, iteration))
        END AS since_iterations,
        CASE WHEN goes_on THEN time_before_utc WHEN is_after_start THEN start_utc END AS since_utc,
        CASE
            WHEN goes_on THEN elapsed_seconds - elapsed_before_seconds
            WHEN is_after_start THEN elapsed_seconds
        END AS clock_seconds,
        -- the rate in lines of the Hugging Face Trainer is that of a bar, which is smoothed
        family NOT IN ('hf_trainer', 'deepspeed') AND elapsed_seconds IS NULL AND coalesce(seconds > 0 AND isfinite(seconds), false) AS is_printed,
        -- a printed mean covers the usual number of iterations, even where lines between are missing
        CASE WHEN is_printed THEN least(since_iterations, coalesce(interval, since_iterations)) ELSE since_iterations END AS covers,
        CASE
            WHEN is_printed THEN 'log'
            WHEN since_utc IS NOT NULL AND time_utc > since_utc THEN 'stamps'
            WHEN time_utc IS NULL AND clock_seconds > 0 THEN 'clock'
        END AS seconds_source,
        CASE seconds_source
            WHEN 'log' THEN seconds
            WHEN 'stamps' THEN (epoch_us(time_utc) - epoch_us(since_utc)) / 1e6 / covers
            WHEN 'clock' THEN clock_seconds / covers
        END AS each_seconds
    FROM timed
    WHERE is_counted
)

SELECT
    m.cluster,
    m.task,
    m.iteration,
    make_timestamp(epoch_us(m.end_utc) - CAST(round(m.each_seconds * coalesce(m.covers, 1) * 1e6) AS BIGINT)) AS start_utc,
    m.end_utc,
    m.each_seconds AS seconds,
    m.covers AS iterations_covered,
    m.seconds_source,
    CASE WHEN m.family = 'generic' THEN 'generic' ELSE 'log' END AS evidence,
    coalesce(m.samples, s.global_batch) * s.sequence_length AS tokens,
    m.loss,
    m.learning_rate,
    a.pods,
    a.pod_skew_seconds,
    CASE
        WHEN m.iteration - lag(m.iteration) OVER by_number > m.interval THEN lag(m.iteration) OVER by_number + m.interval
    END AS first_missing,
    m.pod,
    m.line
FROM measured AS m
JOIN across AS a USING (cluster, task, iteration)  -- whole
LEFT JOIN staging.task_settings AS s USING (cluster, task)  -- once
WINDOW by_number AS (PARTITION BY m.cluster, m.task ORDER BY m.iteration)

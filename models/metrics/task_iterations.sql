/* ---
about: 'Every iteration of a training task once, timed by its lines in the log of one pod: the pod with the lowest ranks that prints such lines.'
grain: [cluster, task, iteration]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  iteration: BIGINT [1] number of the iteration, from 1
  start_utc: TIMESTAMP end_utc minus seconds
  end_utc: TIMESTAMP time of its line; for a progress bar, start of training plus the elapsed time that the bar shows; else NULL
  seconds: DOUBLE [s] time from the previous line to its own, for the first line from the start of training; a mean where iterations_covered is above 1
  iterations_covered: BIGINT [1] iterations that its line covers; seconds is their mean
  seconds_source: VARCHAR stamps (timestamps of lines), log (as printed by Megatron-LM or NeMo) or clock (whole seconds of progress bars)
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
  seconds: mean
  tokens: sum
  loss, learning_rate: mean
  pod_skew_seconds: max
  others: none
checks:
  - seconds > 0 or seconds is null
  - pod_skew_seconds >= 0 or pod_skew_seconds is null
  - seconds_source in ('stamps', 'log', 'clock') or seconds_source is null
  - warn: pod_skew_seconds < 60 or pod_skew_seconds is null
    says: "{task}, iteration {iteration:,}: its {pods} pods wrote their lines {pod_skew_seconds:.1f} s apart (a minute or more)"
  - warn: "none: SELECT task, first_missing, iteration - 1 AS last_missing FROM this WHERE first_missing IS NOT NULL"
    says: "{task}: no line tells iterations {first_missing:,} to {last_missing:,}"
sources: docs/metrics/tasks.md
--- */
WITH lines AS (                -- lines about each iteration, best source first: its own line, a progress bar, DeepSpeed's step
    SELECT
        cluster,
        task,
        pod,
        segment,
        item,
        line,
        family,
        kind,
        step,
        steps,
        CASE kind WHEN 'iteration' THEN 1 WHEN 'progress' THEN 2 ELSE 3 END AS choice,
        time_utc,
        seconds,
        samples,
        loss,
        learning_rate,
        CASE WHEN regexp_matches(value, '^([0-9]+:)?[0-9]{1,2}:[0-9]{2}$') THEN
            CASE WHEN regexp_matches(value, ':.*:') THEN CAST(split_part(value, ':', 1) AS BIGINT) * 3600 ELSE 0 END
            + CAST(regexp_extract(value, '([0-9]{1,2}):[0-9]{2}$', 1) AS BIGINT) * 60
            + CAST(regexp_extract(value, '([0-9]{2})$', 1) AS BIGINT)
        END AS elapsed_seconds
    FROM staging.log_events
    WHERE kind = 'iteration' OR (kind IN ('optimizer_step', 'progress') AND step >= 1)
),

lengths AS (                   -- length of the training bars: as planned, else as bars with a loss, else as the first bar
    SELECT
        l.cluster,
        l.task,
        coalesce(
            min(s.planned_iterations),
            min(l.steps) FILTER (WHERE l.kind = 'iteration'),
            min(l.steps) FILTER (WHERE l.loss IS NOT NULL),
            arg_min(l.steps, struct_pack(a := l.pod, b := l.segment, c := l.item))
        ) AS steps
    FROM lines AS l
    LEFT JOIN staging.task_settings AS s ON s.cluster = l.cluster AND s.task = l.task
    GROUP BY l.cluster, l.task
),

training AS (                  -- a bar of another length belongs to an evaluation or another loop
    SELECT l.*
    FROM lines AS l
    LEFT JOIN lengths AS n ON n.cluster = l.cluster AND n.task = l.task
    WHERE l.kind <> 'progress' OR l.steps IS NULL OR n.steps IS NULL OR l.steps = n.steps
),

chosen AS (
    SELECT cluster, task, min(choice) AS choice
    FROM training
    GROUP BY cluster, task
),

printed AS (
    SELECT
        l.*,
        l.kind <> 'progress'
        OR lag(l.step) OVER (PARTITION BY l.cluster, l.task, l.pod ORDER BY l.segment, l.item) IS DISTINCT FROM l.step AS is_new
    FROM training AS l
    JOIN chosen AS c ON c.cluster = l.cluster AND c.task = l.task AND c.choice = l.choice
),

turns AS (
    SELECT *, sum(CAST(is_new AS INTEGER)) OVER (PARTITION BY cluster, task, pod ORDER BY segment, item) AS turn
    FROM printed
),

kept AS (                      -- a bar that is printed again, with its loss or at its end, counts as one line
    SELECT
        cluster,
        task,
        pod,
        min(segment) AS segment,
        arg_min(item, struct_pack(a := segment, b := item)) AS item,
        arg_min(line, struct_pack(a := segment, b := item)) AS line,
        min(family) AS family,
        step,
        min(time_utc) AS time_utc,
        arg_min(seconds, struct_pack(a := segment, b := item)) AS seconds,
        max(samples) AS samples,
        arg_max(loss, struct_pack(a := segment, b := item)) AS loss,
        arg_max(learning_rate, struct_pack(a := segment, b := item)) AS learning_rate,
        min(elapsed_seconds) AS elapsed_seconds
    FROM turns
    GROUP BY cluster, task, pod, turn, step
),

starts AS (                    -- lines where each pod says that training starts, also after a restart
    SELECT cluster, task, pod, segment, time_utc
    FROM staging.log_events
    WHERE kind = 'train_start' AND time_utc IS NOT NULL
),

started AS (
    SELECT k.cluster, k.task, k.pod, k.segment, k.item, max(s.segment) AS start_segment
    FROM kept AS k
    JOIN starts AS s ON s.cluster = k.cluster AND s.task = k.task AND s.pod = k.pod AND s.segment < k.segment
    GROUP BY k.cluster, k.task, k.pod, k.segment, k.item
),

in_order AS (                  -- each line with the previous line of the same pod
    SELECT
        k.*,
        s.start_segment,
        lag(k.segment) OVER (PARTITION BY k.cluster, k.task, k.pod ORDER BY k.segment, k.item) AS segment_before,
        lag(k.step) OVER (PARTITION BY k.cluster, k.task, k.pod ORDER BY k.segment, k.item) AS step_before,
        lag(k.time_utc) OVER (PARTITION BY k.cluster, k.task, k.pod ORDER BY k.segment, k.item) AS time_before,
        lag(k.elapsed_seconds) OVER (PARTITION BY k.cluster, k.task, k.pod ORDER BY k.segment, k.item) AS elapsed_before,
        row_number() OVER (
            PARTITION BY k.cluster, k.task, k.pod, k.step ORDER BY k.segment DESC, k.item DESC
        ) AS times_from_last
    FROM kept AS k
    LEFT JOIN started AS s
        ON s.cluster = k.cluster AND s.task = k.task AND s.pod = k.pod AND s.segment = k.segment AND s.item = k.item
),

apart AS (                     -- usual number of iterations from line to line
    SELECT cluster, task, min(step - step_before) AS interval
    FROM in_order
    WHERE step > step_before
    GROUP BY cluster, task
),

timed AS (                     -- a line is timed from the previous line, or from the start of training if that is nearer
    SELECT
        o.*,
        CASE
            WHEN o.step > o.step_before AND coalesce(o.start_segment < o.segment_before, true) THEN o.step - o.step_before
            WHEN o.step <= 1 THEN 1
            WHEN coalesce(o.start_segment < o.segment_before, false) THEN NULL
            WHEN a.interval IS NOT NULL OR b.time_utc IS NOT NULL THEN least(o.step, coalesce(a.interval, o.step))
        END AS covers,
        CASE
            WHEN o.step > o.step_before AND coalesce(o.start_segment < o.segment_before, true) THEN o.time_before
            WHEN o.segment_before IS NULL OR o.start_segment > o.segment_before THEN b.time_utc
        END AS since_utc,
        CASE
            WHEN o.step > o.step_before THEN o.elapsed_seconds - o.elapsed_before
            WHEN o.segment_before IS NULL THEN o.elapsed_seconds
        END AS clock_seconds
    FROM in_order AS o
    LEFT JOIN apart AS a ON a.cluster = o.cluster AND a.task = o.task
    LEFT JOIN starts AS b
        ON b.cluster = o.cluster AND b.task = o.task AND b.pod = o.pod AND b.segment = o.start_segment
    WHERE o.times_from_last = 1
),

first_pods AS (                -- the pod whose lines count; lines of the other pods give the skew
    SELECT
        t.cluster,
        t.task,
        t.pod,
        row_number() OVER (PARTITION BY t.cluster, t.task ORDER BY p.first_rank NULLS LAST, t.pod) AS place
    FROM (SELECT DISTINCT cluster, task, pod FROM kept) AS t
    LEFT JOIN topology.task_pods AS p ON p.cluster = t.cluster AND p.task = t.task AND p.pod = t.pod
),

across AS (
    SELECT
        cluster,
        task,
        step,
        count(DISTINCT pod) AS pods,
        CASE WHEN count(time_utc) > 1 THEN (max(epoch_us(time_utc)) - min(epoch_us(time_utc))) / 1e6 END AS pod_skew_seconds
    FROM timed
    GROUP BY cluster, task, step
),

measured AS (
    SELECT
        t.* EXCLUDE (time_utc, covers),
        -- a printed mean covers the usual number of iterations, even where lines between are missing
        CASE
            WHEN t.family IN ('megatron', 'lightning') AND t.elapsed_seconds IS NULL AND t.seconds IS NOT NULL
                THEN least(t.covers, coalesce(a.interval, t.covers))
            ELSE t.covers
        END AS covers,
        coalesce(t.time_utc, u.time_utc + t.elapsed_seconds * INTERVAL '1 second') AS time_utc,
        CASE
            WHEN t.family IN ('megatron', 'lightning') AND t.elapsed_seconds IS NULL AND t.seconds IS NOT NULL THEN 'log'
            WHEN t.since_utc IS NOT NULL AND t.time_utc > t.since_utc THEN 'stamps'
            WHEN t.time_utc IS NULL AND t.clock_seconds > 0 THEN 'clock'
        END AS seconds_source
    FROM timed AS t
    JOIN first_pods AS f ON f.cluster = t.cluster AND f.task = t.task AND f.pod = t.pod
    LEFT JOIN apart AS a ON a.cluster = t.cluster AND a.task = t.task
    LEFT JOIN starts AS u
        ON u.cluster = t.cluster AND u.task = t.task AND u.pod = t.pod AND u.segment = t.start_segment
    WHERE f.place = 1
),

lasting AS (
    SELECT
        *,
        CASE seconds_source
            WHEN 'log' THEN seconds
            WHEN 'stamps' THEN (epoch_us(time_utc) - epoch_us(since_utc)) / 1e6 / covers
            WHEN 'clock' THEN clock_seconds / covers
        END AS each_seconds
    FROM measured
)

SELECT
    l.cluster,
    l.task,
    l.step AS iteration,
    make_timestamp(epoch_us(l.time_utc) - CAST(round(l.each_seconds * coalesce(l.covers, 1) * 1e6) AS BIGINT)) AS start_utc,
    l.time_utc AS end_utc,
    l.each_seconds AS seconds,
    l.covers AS iterations_covered,
    l.seconds_source,
    coalesce(l.samples, s.global_batch) * s.sequence_length AS tokens,
    l.loss,
    l.learning_rate,
    a.pods,
    a.pod_skew_seconds,
    CASE
        WHEN l.step - lag(l.step) OVER (PARTITION BY l.cluster, l.task ORDER BY l.step) > i.interval
            THEN lag(l.step) OVER (PARTITION BY l.cluster, l.task ORDER BY l.step) + i.interval
    END AS first_missing,
    l.pod,
    l.line
FROM lasting AS l
JOIN across AS a ON a.cluster = l.cluster AND a.task = l.task AND a.step = l.step
LEFT JOIN apart AS i ON i.cluster = l.cluster AND i.task = l.task
LEFT JOIN staging.task_settings AS s ON s.cluster = l.cluster AND s.task = l.task

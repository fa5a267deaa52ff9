/* ---
about: 'Every printed iteration of a training task''s pods in the order of the log, with the line before it, and whether the task was restarted in between.'
grain: [cluster, task, pod, segment, item]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  segment: INTEGER [1] number of the line's piece of the log, see staging.log_events
  item: INTEGER [1] number of the event in its segment
  file: VARCHAR the log
  line: INTEGER [1] line number in that log
  is_counted: BOOLEAN true for the pod whose lines are those of metrics.task_iterations, the one with the lowest ranks
  family: VARCHAR writer of the line, see staging.log_events
  iteration: BIGINT [1] number of the iteration
  time_utc: TIMESTAMP time of the line; NULL where it has none
  end_utc: TIMESTAMP the same; for a progress bar, start of training plus the elapsed time that the bar shows
  elapsed_seconds: DOUBLE [s] elapsed time that a progress bar shows
  seconds: DOUBLE [s] time per iteration as printed
  samples: BIGINT [1] samples per iteration as printed
  loss: DOUBLE [1] loss as printed
  learning_rate: DOUBLE [1] learning rate as printed
  start_segment: INTEGER [1] segment of the last line before that says that training starts
  start_utc: TIMESTAMP time of that line
  segment_before: INTEGER [1] segment of the previous line
  iteration_before: BIGINT [1] its iteration
  time_before_utc: TIMESTAMP its time_utc
  end_before_utc: TIMESTAMP its end_utc
  elapsed_before_seconds: DOUBLE [s] its elapsed_seconds
  restart: VARCHAR why the task was restarted since the previous line, text of an error or a rule (start of training, step back); NULL where it was not
  restart_pod: VARCHAR pod whose log shows the restart
  restart_file: VARCHAR that log
  restart_line: INTEGER [1] line of the error, of the start of training, or of the step back
  restarts: BIGINT [1] starts of training since the previous line, at least one; NULL where the task was not restarted
  resumed_utc: TIMESTAMP last start of training since the previous line
time: end_utc
dimensions: [cluster, task, pod, iteration]
measures:
  seconds: mean except over task
  others: none
checks:
  - restart is null or segment_before is not null
sources: docs/metrics/tasks.md
--- */
WITH events AS (
    SELECT cluster, task, pod, segment, item, file, line, label, family, kind, level, name, value, step, steps,
        time_utc, seconds, samples, loss, learning_rate, text
    FROM staging.log_events
),

lines AS (                -- lines about each iteration, best source first: its own line, a bar, DeepSpeed's step, an unknown trainer's
    SELECT
        cluster,
        task,
        pod,
        segment,
        item,
        file,
        line,
        label,
        family,
        kind,
        step,
        steps,
        CASE
            WHEN family = 'generic' THEN 4
            WHEN kind = 'iteration' THEN 1
            WHEN kind = 'progress' THEN 2
            ELSE 3
        END AS choice,
        time_utc,
        seconds,
        samples,
        -- a dictionary on a line of its own is of the step of the bar that is drawn again below it
        coalesce(loss, CASE WHEN kind = 'progress' AND lag(kind) OVER log = 'loss' THEN lag(loss) OVER log END) AS loss,
        coalesce(learning_rate, CASE WHEN kind = 'progress' AND lag(kind) OVER log = 'loss' THEN lag(learning_rate) OVER log END) AS learning_rate,
        CASE WHEN regexp_matches(value, '^([0-9]+:)?[0-9]{1,2}:[0-9]{2}$') THEN
            CASE WHEN regexp_matches(value, ':.*:') THEN CAST(split_part(value, ':', 1) AS BIGINT) * 3600 ELSE 0 END
            + CAST(regexp_extract(value, '([0-9]{1,2}):[0-9]{2}$', 1) AS BIGINT) * 60
            + CAST(regexp_extract(value, '([0-9]{2})$', 1) AS BIGINT)
        END AS elapsed_seconds
    FROM events
    WHERE kind IN ('iteration', 'loss') OR (kind IN ('optimizer_step', 'progress') AND step >= 1)
    WINDOW log AS (PARTITION BY cluster, task, pod ORDER BY segment, item)
    QUALIFY kind <> 'loss'
),

lengths AS (                   -- length of the training bars: as planned, else as bars with a loss, else as the first bar
    SELECT
        l.cluster,
        l.task,
        coalesce(
            min(s.planned_iterations),
            min(l.steps) FILTER (WHERE l.choice = 1),
            min(l.steps) FILTER (WHERE l.loss IS NOT NULL),
            arg_min(l.steps, (l.pod, l.segment, l.item))
        ) AS steps
    FROM lines AS l
    LEFT JOIN staging.task_settings AS s USING (cluster, task)  -- once
    GROUP BY l.cluster, l.task
),

training AS (                  -- a bar of another length belongs to an evaluation or another loop
    SELECT l.*
    FROM lines AS l
    LEFT JOIN lengths AS n USING (cluster, task)  -- once
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
        OR lag(l.step) OVER log IS DISTINCT FROM l.step
        OR coalesce(l.elapsed_seconds < lag(l.elapsed_seconds) OVER log, false) AS is_new
    FROM training AS l
    JOIN chosen USING (cluster, task, choice)  -- filter
    WINDOW log AS (PARTITION BY l.cluster, l.task, l.pod ORDER BY l.segment, l.item)
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
        arg_min(item, (segment, item)) AS item,
        arg_min(file, (segment, item)) AS file,
        arg_min(line, (segment, item)) AS line,
        arg_min(label, (segment, item)) AS label,
        min(family) AS family,
        step,
        max(steps) AS steps,
        min(time_utc) AS time_utc,
        arg_min(seconds, (segment, item)) AS seconds,
        max(samples) AS samples,
        arg_max(loss, (segment, item)) AS loss,
        arg_max(learning_rate, (segment, item)) AS learning_rate,
        min(elapsed_seconds) AS elapsed_seconds
    FROM turns
    GROUP BY cluster, task, pod, turn, step
),

starts AS (                    -- lines where each pod says that training starts, also after a restart
    SELECT
        cluster,
        task,
        pod,
        segment,
        min(file) AS file,
        min(line) AS line,
        min(time_utc) AS time_utc,
        row_number() OVER (PARTITION BY cluster, task, pod ORDER BY segment) AS turn
    FROM events
    WHERE kind = 'train_start'
    GROUP BY cluster, task, pod, segment
),

clocked AS (                   -- seconds of a line on the clock of its log, to compare lines of the same log
    SELECT
        k.*,
        s.segment AS start_segment,
        s.time_utc AS start_utc,
        coalesce(k.time_utc, s.time_utc + k.elapsed_seconds * INTERVAL '1 second') AS end_utc,
        coalesce(epoch_us(coalesce(k.time_utc, s.time_utc + k.elapsed_seconds * INTERVAL '1 second')) / 1e6, k.elapsed_seconds) AS clock
    FROM kept AS k
    ASOF LEFT JOIN starts AS s  -- once
        ON s.cluster = k.cluster AND s.task = k.task AND s.pod = k.pod AND s.segment < k.segment
),

again AS (                     -- each line beside the previous one, and beside the one before about the same iteration
    SELECT
        *,
        step - lag(step) OVER log AS steps_on,
        clock - lag(clock) OVER log AS seconds_on,
        row_number() OVER same AS turn,
        (epoch_us(end_utc) - epoch_us(lag(end_utc) OVER same)) / 1e6 AS seconds_since,
        label IS DISTINCT FROM lag(label) OVER same AS is_other_label
    FROM clocked
    WINDOW
        log AS (PARTITION BY cluster, task, pod ORDER BY segment, item),
        same AS (PARTITION BY cluster, task, pod, step ORDER BY segment, item)
),

usual AS (                     -- NULL if there is nothing to compare with
    SELECT cluster, task, pod, CASE WHEN count(*) > 1 THEN quantile_disc(seconds_on / steps_on, 0.5) END AS usual_seconds
    FROM again
    WHERE steps_on > 0 AND seconds_on > 0
    GROUP BY cluster, task, pod
),

single AS (                    -- several ranks may print an iteration into one log, within the time of an iteration
    SELECT
        a.* EXCLUDE (steps_on, seconds_on, turn, seconds_since, is_other_label),
        u.usual_seconds,
        coalesce(
            a.step > max(a.step) OVER (
                PARTITION BY a.cluster, a.task, a.pod ORDER BY a.segment, a.item ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            true
        ) AS is_highest
    FROM again AS a
    LEFT JOIN usual AS u USING (cluster, task, pod)  -- once, filter
    WHERE a.turn = 1 OR coalesce(abs(a.seconds_since) >= u.usual_seconds, NOT a.is_other_label)
),

highest AS (                   -- each line with the highest iteration up to it, and the next higher one
    SELECT
        *,
        max(step) OVER (log ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS top,
        max(start_segment) FILTER (WHERE is_highest) OVER (log ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS top_start,
        min(step) FILTER (WHERE is_highest) OVER (log ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next_top,
        min(start_segment) FILTER (WHERE is_highest) OVER (log ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next_start
    FROM single
    WINDOW log AS (PARTITION BY cluster, task, pod ORDER BY segment, item)
),

judged AS (                    -- lower numbers between two iterations in sequence are another counter, as of an evaluation
    SELECT
        *,
        NOT is_highest
        AND next_top - top <= median(next_top - top) FILTER (WHERE is_highest) OVER (PARTITION BY cluster, task, pod)
        AND next_start IS NOT DISTINCT FROM top_start
        AND top > last_value(step) OVER (
            PARTITION BY cluster, task, pod, top ORDER BY segment, item ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS is_other_counter
    FROM highest
),

in_order AS (                  -- each line with the previous line of the same pod
    SELECT
        *,
        row_number() OVER log AS place,
        lag(segment) OVER log AS segment_before,
        lag(step) OVER log AS step_before,
        lag(steps) OVER log AS steps_before,
        lag(time_utc) OVER log AS time_before_utc,
        lag(end_utc) OVER log AS end_before_utc,
        lag(elapsed_seconds) OVER log AS elapsed_before_seconds,
        -- at least one iteration more than usual; an error costs nothing otherwise
        coalesce(
            clock - lag(clock) OVER log NOT BETWEEN 0 AND usual_seconds * (greatest(step - lag(step) OVER log, 0) + 1), true
        ) AS is_long
    FROM judged
    WHERE is_other_counter IS NOT TRUE
    WINDOW log AS (PARTITION BY cluster, task, pod ORDER BY segment, item)
),

stamps AS (
    SELECT cluster, task, pod, segment, min(time_utc) AS time_utc
    FROM events
    WHERE time_utc IS NOT NULL
    GROUP BY cluster, task, pod, segment
),

errors AS (                    -- the time of an error is that of the next line with a time
    SELECT
        e.cluster,
        e.task,
        e.pod,
        e.segment,
        e.item,
        e.file,
        e.line,
        CASE WHEN e.kind = 'error' THEN 1 WHEN e.kind = 'traceback' THEN 3 ELSE 2 END AS choice,
        trim(left(regexp_replace(
            substr(e.text, greatest(strpos(e.text, e.name), 1)), '\x1b\[[0-9;?]*[A-Za-z]', '', 'g'
        ), 200)) AS reason,
        coalesce(e.time_utc, t.time_utc) AS time_utc
    FROM events AS e
    -- once
    ASOF LEFT JOIN stamps AS t ON t.cluster = e.cluster AND t.task = e.task AND t.pod = e.pod AND t.segment >= e.segment
    WHERE e.kind IN ('error', 'traceback') OR e.level IN ('ERROR', 'CRITICAL')
),

signs AS (
    SELECT cluster, task, pod, segment, item, file, line, choice, reason, time_utc, false AS is_first_start
    FROM errors
    UNION ALL
    SELECT cluster, task, pod, segment, 0 AS item, file, line, 4 AS choice, 'start of training' AS reason, time_utc, turn = 1
    FROM starts
),

stream AS (
    SELECT cluster, task, pod, segment, item, file, line, choice, reason, time_utc, CAST(NULL AS BIGINT) AS place
    FROM signs
    UNION ALL
    SELECT cluster, task, pod, segment, item, file, line, NULL AS choice, NULL AS reason, time_utc, place
    FROM in_order
),

located AS (                   -- signs of a restart with the number of the line before
    SELECT *, count(place) OVER (PARTITION BY cluster, task, pod ORDER BY segment, item, choice) AS place_before
    FROM stream
),

own AS (
    SELECT
        cluster,
        task,
        pod,
        place_before,
        arg_min(struct_pack(choice, reason, pod, file, line), (choice, segment, item)) AS sign,
        count(*) FILTER (WHERE choice = 4) AS starts,
        max(time_utc) FILTER (WHERE choice = 4) AS resumed_utc
    FROM located
    WHERE place IS NULL
    GROUP BY cluster, task, pod, place_before
),

pods AS (                      -- the pod whose lines count; those of the other pods give the skew
    SELECT
        t.cluster,
        t.task,
        t.pod,
        row_number() OVER (PARTITION BY t.cluster, t.task ORDER BY p.first_rank NULLS LAST, t.pod) = 1 AS is_counted
    FROM (SELECT DISTINCT cluster, task, pod FROM kept) AS t
    LEFT JOIN topology.task_pods AS p USING (cluster, task, pod)  -- once
),

theirs AS (                    -- signs in the logs of other pods, in intervals that may be a restart
    SELECT
        o.cluster,
        o.task,
        o.pod,
        o.place,
        arg_min(
            struct_pack(choice := s.choice, reason := s.reason, pod := s.pod, file := s.file, line := s.line),
            (s.choice, s.time_utc, s.pod, s.segment, s.item)
        ) AS sign,
        count(*) FILTER (WHERE s.choice = 4) // greatest(count(DISTINCT s.pod) FILTER (WHERE s.choice = 4), 1) AS starts,
        max(s.time_utc) FILTER (WHERE s.choice = 4) AS resumed_utc
    FROM in_order AS o
    JOIN signs AS s USING (cluster, task)  -- filter
    WHERE
        s.pod <> o.pod AND s.time_utc > o.end_before_utc AND s.time_utc <= o.end_utc
        AND (o.is_long OR o.step < o.step_before) AND NOT s.is_first_start
    GROUP BY o.cluster, o.task, o.pod, o.place
),

told AS (
    SELECT
        o.*,
        p.is_counted,
        coalesce(m.resumed_utc, t.resumed_utc) AS resumed_utc,
        coalesce(nullif(m.starts, 0), t.starts, 0) AS starts,
        CASE WHEN coalesce(m.sign.choice <= t.sign.choice, t.sign IS NULL) THEN m.sign ELSE t.sign END AS sign,
        CASE
            WHEN o.step_before >= o.steps_before AND o.steps <> o.steps_before THEN false    -- another loop
            ELSE
                coalesce(m.starts > 0, false)
                OR coalesce(t.starts > 0, false)
                OR coalesce(o.step < o.step_before AND coalesce(o.step_before < o.steps_before, true), false)
                OR (o.is_long AND (m.sign IS NOT NULL OR t.sign IS NOT NULL))
        END AND o.place > 1 AS is_restart
    FROM in_order AS o
    JOIN pods AS p USING (cluster, task, pod)  -- whole
    -- once
    LEFT JOIN own AS m ON m.cluster = o.cluster AND m.task = o.task AND m.pod = o.pod AND m.place_before = o.place - 1
    LEFT JOIN theirs AS t USING (cluster, task, pod, place)  -- once
)

SELECT
    cluster,
    task,
    pod,
    segment,
    item,
    file,
    line,
    is_counted,
    family,
    step AS iteration,
    time_utc,
    end_utc,
    elapsed_seconds,
    seconds,
    samples,
    loss,
    learning_rate,
    start_segment,
    start_utc,
    segment_before,
    step_before AS iteration_before,
    time_before_utc,
    end_before_utc,
    elapsed_before_seconds,
    CASE WHEN is_restart THEN coalesce(sign.reason, 'step back') END AS restart,
    CASE WHEN is_restart THEN coalesce(sign.pod, pod) END AS restart_pod,
    CASE WHEN is_restart THEN coalesce(sign.file, file) END AS restart_file,
    CASE WHEN is_restart THEN coalesce(sign.line, line) END AS restart_line,
    CASE WHEN is_restart THEN greatest(starts, 1) END AS restarts,
    CASE WHEN is_restart THEN resumed_utc END AS resumed_utc
FROM told

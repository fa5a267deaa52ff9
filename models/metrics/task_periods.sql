/* ---
about: Traffic period of a training task's servers beside the iteration time of its log, in each hour with both.
grain: [cluster, task, pod, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  server: VARCHAR server of the pod
  hour_utc: TIMESTAMP the hour
  iterations: BIGINT [1] logged iterations within the hour
  iteration_p50_seconds: DOUBLE [s] median time of these iterations, by the log
  period_seconds: DOUBLE [s] period of the server's traffic in the hour; NULL where the period is not resolved
  pulses_per_iteration: BIGINT [1] integer number of periods nearest to one iteration, at least 1
  difference_ratio: DOUBLE [1] pulses_per_iteration x period_seconds / iteration_p50_seconds - 1
  pulses: BIGINT [1] pulses that began within an iteration
  dated_iterations: BIGINT [1] iterations in which a pulse began
  after_p50_seconds: DOUBLE [s] median time from the start of an iteration to the start of its first pulse
  scatter_seconds: DOUBLE [s] spread of these times, 1.4826 x the median absolute deviation
  status: VARCHAR ok, shared (another task trained on the server in the hour) or unresolved (the traffic shows no period)
time: hour_utc
dimensions: [cluster, task, pod, server, status]
measures:
  iterations, dated_iterations, pulses: sum except over pod
  others: none
checks:
  - status in ('ok', 'shared', 'unresolved')
  - (status = 'unresolved') = (period_seconds is null)
  - iterations >= 1 and iteration_p50_seconds > 0
sources: docs/metrics/periods.md
--- */
WITH iterations AS (           -- iterations with a line of their own
    SELECT cluster, task, iteration, start_utc, end_utc, seconds
    FROM metrics.task_iterations
    WHERE iterations_covered = 1 AND start_utc IS NOT NULL
),

hours AS (                     -- logged iterations of each hour with loaded traffic
    SELECT
        p.cluster,
        p.task,
        p.pod,
        p.server,
        t.hour_utc,
        t.period_seconds,
        count(*) AS iterations,
        quantile_cont(i.seconds, 0.5) AS iteration_p50_seconds
    FROM topology.task_pods AS p
    JOIN metrics.traffic_periods AS t USING (cluster, server)  -- filter
    JOIN iterations AS i USING (cluster, task)  -- grain, filter
    WHERE i.seconds IS NOT NULL AND i.start_utc >= t.hour_utc AND epoch_us(i.end_utc) <= epoch_us(t.hour_utc) + 3600000000
    GROUP BY ALL
),

on_server AS (
    SELECT cluster, server, hour_utc, count(DISTINCT task) AS tasks
    FROM hours
    GROUP BY ALL
),

pulses AS (                    -- starts as seen on the server's ports
    SELECT cluster, server, hour_utc, hour_utc + to_milliseconds(unnest(starts_ms)) AS start_utc
    FROM metrics.traffic_periods
    WHERE period_seconds IS NOT NULL
),

within AS (                    -- the iteration, by the log, in which each pulse began
    SELECT p.cluster, p.task, p.pod, q.hour_utc, i.iteration, (epoch_us(q.start_utc) - epoch_us(i.start_utc)) / 1e6 AS after_seconds
    FROM topology.task_pods AS p
    JOIN iterations AS i USING (cluster, task)  -- grain, filter
    -- grain, filter
    JOIN pulses AS q ON q.cluster = p.cluster AND q.server = p.server AND q.start_utc >= i.start_utc AND q.start_utc < i.end_utc
    QUALIFY row_number() OVER (PARTITION BY p.cluster, p.task, p.pod, q.start_utc ORDER BY i.start_utc DESC, i.iteration) = 1
),

firsts AS (                    -- the first pulse of each iteration
    SELECT cluster, task, pod, hour_utc, iteration, min(after_seconds) AS after_seconds, count(*) AS pulses
    FROM within
    GROUP BY ALL
),

usual AS (
    SELECT cluster, task, pod, hour_utc, quantile_cont(after_seconds, 0.5) AS after_p50_seconds
    FROM firsts
    GROUP BY ALL
),

dated AS (
    SELECT
        f.cluster,
        f.task,
        f.pod,
        f.hour_utc,
        u.after_p50_seconds,
        count(*) AS dated_iterations,
        sum(f.pulses) AS pulses,
        1.4826e0 * quantile_cont(abs(f.after_seconds - u.after_p50_seconds), 0.5) AS scatter_seconds
    FROM firsts AS f
    JOIN usual AS u USING (cluster, task, pod, hour_utc)  -- whole
    GROUP BY ALL
),

compared AS (
    SELECT
        *,
        greatest(CAST(round(iteration_p50_seconds / period_seconds) AS BIGINT), 1) AS pulses_per_iteration
    FROM hours
)

SELECT
    c.cluster,
    c.task,
    c.pod,
    c.server,
    c.hour_utc,
    c.iterations,
    c.iteration_p50_seconds,
    c.period_seconds,
    CASE WHEN c.period_seconds IS NOT NULL THEN c.pulses_per_iteration END AS pulses_per_iteration,
    c.pulses_per_iteration * c.period_seconds / c.iteration_p50_seconds - 1 AS difference_ratio,
    coalesce(d.pulses, 0) AS pulses,
    coalesce(d.dated_iterations, 0) AS dated_iterations,
    d.after_p50_seconds,
    d.scatter_seconds,
    CASE WHEN c.period_seconds IS NULL THEN 'unresolved' WHEN s.tasks > 1 THEN 'shared' ELSE 'ok' END AS status
FROM compared AS c
JOIN on_server AS s USING (cluster, server, hour_utc)  -- whole
LEFT JOIN dated AS d USING (cluster, task, pod, hour_utc)  -- once

/* ---
about: Jobs of an hour as the network sees them, without logs, for every tenant. Who trains together is in metrics.traffic_groups.
grain: [cluster, hour_utc, group_id]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  group_id: INTEGER [1] number of the job in the hour, as in metrics.traffic_groups
  servers: INTEGER [1] servers of the job; an owner that stands for two counts once
  leaves: INTEGER [1] loaded leaves on which they moved bytes
  rails: INTEGER [1] rails that moved a tenth or more of the bytes of the job's busiest rail
  bytes: BIGINT [B] bytes received and sent in the hour
  access_share: DOUBLE [1] share of the bytes that all servers received and sent
  period_seconds: DOUBLE [s] mean time from iteration to iteration; NULL where the period is not resolved
  period_error_seconds: DOUBLE [s] standard error of the period
  alias_seconds: DOUBLE [s] period of faster iterations that would look the same; NULL where they are excluded
  coherence: DOUBLE [1] coherence of its leaves at the period, 1 if all are in phase, 1/leaves by chance; NULL for one leaf
  alias_coherence: DOUBLE [1] coherence of its leaves at the alias of the period, 1 / (1 - 1/period)
  alias_reason: VARCHAR why the alias is not excluded; NULL where it is, or where no period is resolved
  period: VARCHAR the period and its error as text, rounded to the first digit of the error, such as 124.8 ± 0.3 s, and its alias
  iterations: INTEGER [1] iterations in its active time
  duty_cycle: DOUBLE [1] share of the time above half of the pulses' height; NULL below 4 s
  bytes_per_iteration: BIGINT [B] bytes received and sent in an iteration
  resolved_from: VARCHAR server (half of its servers or more show the period alone) or group
  unresolved: VARCHAR why no period is resolved, as in metrics.traffic_periods; NULL where one is
  clock_of: INTEGER [1] the largest job that it follows in step; NULL where there is none
  lag_seconds: DOUBLE [s] time by which it is later than that job; NULL where its rails do not agree in one
  task: VARCHAR tasks whose log has iterations on its servers in the hour; NULL without a log
time: hour_utc
dimensions: [cluster, group_id, resolved_from, unresolved, task]
measures:
  servers: sum except over hour_utc
  leaves, rails: max
  bytes: sum, shown in TB
  iterations: sum
  others: none
sources: docs/metrics/periods.md
--- */
WITH logged AS (
    SELECT
        g.cluster,
        g.hour_utc,
        g.group_id,
        string_agg(DISTINCT t.task, ', ' ORDER BY t.task) AS task
    FROM metrics.traffic_groups AS g
    JOIN metrics.task_periods AS t USING (cluster, server, hour_utc)
    GROUP BY ALL
),

moved AS (                     -- bytes of a job over each rail with counters
    SELECT
        g.cluster,
        g.hour_utc,
        g.group_id,
        {{ rail('o.switch') }} AS rail,
        sum(h.in_bytes + h.out_bytes) AS bytes
    FROM metrics.traffic_groups AS g
    JOIN topology.hour_owners AS o USING (cluster, server, hour_utc)
    JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)
    GROUP BY ALL
),

used AS (
    SELECT cluster, hour_utc, group_id, count(*) FILTER (WHERE is_used) AS rails
    FROM (
        SELECT
            *,
            {{ uses_rail('bytes', 'of_job') }} AS is_used
        FROM moved
        WINDOW of_job AS (PARTITION BY cluster, hour_utc, group_id)
    ) AS rails
    GROUP BY cluster, hour_utc, group_id
),

fabric AS (
    SELECT cluster, hour_utc, sum(rx_bytes + tx_bytes) AS bytes
    FROM metrics.server_hour
    GROUP BY cluster, hour_utc
)

SELECT
    j.cluster,
    j.hour_utc,
    j.group_id,
    j.servers,
    j.leaves,
    CAST(u.rails AS INTEGER) AS rails,
    j.bytes,
    j.bytes / f.bytes AS access_share,
    j.period_seconds,
    j.period_error_seconds,
    j.alias_seconds,
    j.coherence,
    j.alias_coherence,
    CASE
        WHEN j.alias_seconds IS NOT NULL THEN coalesce(
            printf(
                'leaves too few, or not in phase: coherence %.2f at %.3f s and %.2f at %.3f s',
                j.coherence, j.period_seconds, j.alias_coherence, j.alias_seconds
            ),
            'refreshes of fewer than two leaves are known'
        )
    END AS alias_reason,
    {{ period_text('j.period_seconds', 'j.period_error_seconds', 'j.alias_seconds') }} AS period,
    j.iterations,
    j.duty_cycle,
    j.bytes_per_iteration,
    j.resolved_from,
    j.unresolved,
    j.clock_of,
    j.lag_seconds,
    l.task
FROM metrics.job_periods AS j
JOIN fabric AS f USING (cluster, hour_utc)
LEFT JOIN used AS u USING (cluster, hour_utc, group_id)
LEFT JOIN logged AS l USING (cluster, hour_utc, group_id)

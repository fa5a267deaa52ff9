/* ---
about: Stretches of an hour in which a job that runs before and after moved next to nothing, for longer than its period.
partition: hour_utc
grain: [cluster, hour_utc, group_id, start_utc]
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  group_id: INTEGER [1] the group in metrics.traffic_groups
  start_utc: TIMESTAMP first second under a tenth of the job's mean rate
  seconds: BIGINT [s] consecutive seconds under it, at least five and longer than the period, none of them in a gap between polls
  bytes: BIGINT [B] bytes that its servers received and sent meanwhile
time: start_utc
dimensions: [cluster, group_id]
measures:
  seconds: sum except over group_id
  bytes: sum, shown in GB
checks:
  - seconds between 5 and 3600
  - references(cluster, hour_utc, group_id) -> metrics.job_periods(cluster, hour_utc, group_id)
sources: docs/metrics/findings.md
--- */
WITH series AS (
    SELECT
        g.cluster,
        g.hour_utc,
        g.group_id,
        r.seconds,
        r.bytes,
        r.gap_seconds
    FROM metrics.traffic_groups AS g
    JOIN metrics.rail_seconds AS r USING (cluster, server, hour_utc)
),

moved AS (
    SELECT cluster, hour_utc, group_id, second, sum(bytes) AS bytes
    FROM (SELECT cluster, hour_utc, group_id, unnest(seconds) AS second, unnest(bytes) AS bytes FROM series) AS s
    GROUP BY ALL
),

gaps AS (
    SELECT DISTINCT cluster, hour_utc, group_id, unnest(gap_seconds) AS second
    FROM series
),

seconds AS (                   -- low: under a tenth of the mean rate
    SELECT
        j.cluster,
        j.hour_utc,
        j.group_id,
        j.period_seconds,
        s.second,
        coalesce(m.bytes, 0) AS bytes,
        coalesce(m.bytes, 0) * 36000 < j.bytes AS is_low,
        g.second IS NOT NULL AS is_gap
    FROM metrics.job_periods AS j
    CROSS JOIN range(3600) AS s (second)
    LEFT JOIN moved AS m
        ON m.cluster = j.cluster AND m.hour_utc = j.hour_utc AND m.group_id = j.group_id AND m.second = s.second
    LEFT JOIN gaps AS g
        ON g.cluster = j.cluster AND g.hour_utc = j.hour_utc AND g.group_id = j.group_id AND g.second = s.second
    WHERE j.period_seconds IS NOT NULL
),

stretches AS (                 -- low seconds in a row have one number
    SELECT
        *,
        count(*) FILTER (WHERE NOT is_low OR is_gap) OVER (PARTITION BY cluster, hour_utc, group_id ORDER BY second) AS stretch,
        min(second) FILTER (WHERE NOT is_low) OVER (PARTITION BY cluster, hour_utc, group_id) AS first_busy,
        max(second) FILTER (WHERE NOT is_low) OVER (PARTITION BY cluster, hour_utc, group_id) AS last_busy
    FROM seconds
)

SELECT
    cluster,
    hour_utc,
    group_id,
    make_timestamp(epoch_us(hour_utc) + min(second) * 1000000) AS start_utc,
    count(*) AS seconds,
    sum(bytes) AS bytes
FROM stretches
WHERE is_low AND NOT is_gap AND second BETWEEN first_busy AND last_busy
GROUP BY cluster, hour_utc, group_id, stretch
HAVING count(*) >= 5 AND count(*) > min(period_seconds)

/* ---
about: How well each switch was observed in each hour.
partition: hour_utc
grain: [cluster, switch, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR leaf or storage leaf
  hour_utc: TIMESTAMP the hour
  polls: BIGINT [1] poll times, the same for all ports of a switch
  median_poll_ms: DOUBLE [ms] median time between two polls
  opening_gap_seconds: DOUBLE [s] longest time between two polls that begins in the first 300 s
  gap_bytes_share: DOUBLE [1] share of the bytes in that stand in the rows right after that longest time
  missing_port_polls: BIGINT [1] poll times at which a port has no row, over all ports
  zero_rows: BIGINT [1] rows with no bytes either way
  wraps: BIGINT [1] rows in which a 32-bit counter wrapped
  seconds_over_line_rate: BIGINT [1] port-seconds above line rate, in or out
checks:
  - "warn: missing_port_polls >= 0 and seconds_over_line_rate <= 10"
sources: docs/metrics/rates.md
--- */
WITH poll_times AS (
    SELECT DISTINCT p.cluster, p.switch, p.hour_utc, r.offset_ms
    FROM staging.port_readings AS r
    JOIN staging.port_files AS p ON p.file_key = r.file_key
),

intervals AS (
    SELECT
        *,
        lead(offset_ms) OVER (PARTITION BY cluster, switch, hour_utc ORDER BY offset_ms) AS next_ms
    FROM poll_times
),

polls AS (
    SELECT cluster, switch, hour_utc, count(*) AS polls, median(next_ms - offset_ms) AS median_poll_ms
    FROM intervals
    GROUP BY cluster, switch, hour_utc
),

opening_gap AS (               -- the longest of the intervals that begin in the first 300 s, the first of equals
    SELECT cluster, switch, hour_utc, next_ms AS end_ms, next_ms - offset_ms AS length_ms
    FROM intervals
    WHERE offset_ms < 300000 AND next_ms IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY cluster, switch, hour_utc ORDER BY next_ms - offset_ms DESC, offset_ms
    ) = 1
),

readings AS (
    SELECT
        p.cluster,
        p.switch,
        p.hour_utc,
        count(*) FILTER (WHERE r.in_bytes_raw = 0 AND r.out_bytes_raw = 0) AS zero_rows,
        sum(r.in_bytes_raw) FILTER (WHERE r.offset_ms = g.end_ms AND r.in_bytes_raw > 0) AS gap_bytes
    FROM staging.port_readings AS r
    JOIN staging.port_files AS p ON p.file_key = r.file_key
    LEFT JOIN opening_gap AS g ON g.cluster = p.cluster AND g.switch = p.switch AND g.hour_utc = p.hour_utc
    GROUP BY p.cluster, p.switch, p.hour_utc
),

ports AS (
    SELECT
        cluster,
        switch,
        hour_utc,
        sum(in_bytes) AS in_bytes,
        sum(missing_polls) AS missing_port_polls,
        sum(wraps) AS wraps
    FROM metrics.port_hour
    GROUP BY cluster, switch, hour_utc
),

over_line_rate AS (
    SELECT s.cluster, s.switch, s.hour_utc, count(*) AS port_seconds
    FROM metrics.port_second AS s
    JOIN topology.ports AS p ON p.cluster = s.cluster AND p.switch = s.switch AND p.port = s.port
    WHERE greatest(s.in_bytes, s.out_bytes) * 8 > p.line_rate_bps
    GROUP BY s.cluster, s.switch, s.hour_utc
)

SELECT
    q.cluster,
    q.switch,
    q.hour_utc,
    q.polls,
    q.median_poll_ms,
    g.length_ms / 1000 AS opening_gap_seconds,
    coalesce(r.gap_bytes, 0) / nullif(p.in_bytes, 0) AS gap_bytes_share,
    p.missing_port_polls,
    r.zero_rows,
    p.wraps,
    coalesce(o.port_seconds, 0) AS seconds_over_line_rate
FROM polls AS q
JOIN ports AS p ON p.cluster = q.cluster AND p.switch = q.switch AND p.hour_utc = q.hour_utc
JOIN readings AS r ON r.cluster = q.cluster AND r.switch = q.switch AND r.hour_utc = q.hour_utc
LEFT JOIN opening_gap AS g ON g.cluster = q.cluster AND g.switch = q.switch AND g.hour_utc = q.hour_utc
LEFT JOIN over_line_rate AS o ON o.cluster = q.cluster AND o.switch = q.switch AND o.hour_utc = q.hour_utc

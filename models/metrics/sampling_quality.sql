/* ---
about: Observation quality of each switch in each hour.
partition: hour_utc
grain: [cluster, switch, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR leaf or storage leaf
  hour_utc: TIMESTAMP the hour
  polls: BIGINT [1] poll times, the same for all ports of a switch
  median_poll_ms: DOUBLE [ms] median time between two polls
  opening_gap_seconds: DOUBLE [s] longest interval between two polls that starts in the first 300 s of the hour
  gap_bytes_share: DOUBLE [1] share of the inbound bytes that are in the rows right after the opening gap
  missing_port_polls: BIGINT [1] poll times without a row of a port, summed over all ports
  zero_rows: BIGINT [1] rows without bytes in or out
  wraps: BIGINT [1] rows in which a 32-bit counter wrapped
  seconds_over_line_rate: BIGINT [1] port-seconds above line rate, in or out
  refresh_phase_ms: INTEGER [ms] time in a second, 0 to 999, at which the switch refreshes the counters of its ports, as polls of its access ports show it; NULL where none does
  refresh_spread_ms: INTEGER [ms] largest difference between the phase of ten minutes and that of the hour
  refresh_readings: BIGINT [1] rows with bytes that the phase is computed from
time: hour_utc
measures:
  polls: sum except over switch
  missing_port_polls, zero_rows, wraps, seconds_over_line_rate: sum
  opening_gap_seconds: max
  median_poll_ms: none
  refresh_phase_ms, refresh_spread_ms: none
  refresh_readings: sum
  gap_bytes_share: none, shown in %
checks:
  - total(missing_port_polls) = total(metrics.port_hour.missing_polls)
  - total(zero_rows) = total(staging.port_totals.zero_rows)
  - gap_bytes_share between 0 and 1 or gap_bytes_share is null
  - refresh_phase_ms between 0 and 999 and refresh_spread_ms between 0 and 500 and refresh_readings > 0 or refresh_readings is null
  - none: SELECT cluster, switch FROM metrics.port_hour ANTI JOIN this USING (cluster, switch, hour_utc)
  - warn: seconds_over_line_rate <= 10
    says: "{switch}: {seconds_over_line_rate:,} seconds of its ports are above line rate, {missing_port_polls:,} polls are missing"
sources: docs/metrics/rates.md
--- */
WITH intervals AS (
    SELECT cluster, switch, hour_utc, previous_ms AS start_ms, offset_ms AS end_ms, offset_ms - previous_ms AS length_ms
    FROM staging.switch_polls
),

polls AS (
    SELECT cluster, switch, hour_utc, count(*) AS polls, median(length_ms) AS median_poll_ms
    FROM intervals
    GROUP BY ALL
),

opening_gap AS (               -- the longest interval that starts in the first 300 s; the first of ties
    SELECT cluster, switch, hour_utc, end_ms, length_ms
    FROM intervals
    WHERE start_ms < 300000
    QUALIFY row_number() OVER (PARTITION BY cluster, switch, hour_utc ORDER BY length_ms DESC, end_ms) = 1
),

gap_rows AS (                  -- a row right after the gap carries the bytes of the whole gap
    SELECT p.cluster, p.switch, p.hour_utc, sum(greatest(r.in_bytes_raw, 0)) AS in_bytes
    FROM staging.port_files AS p
    JOIN opening_gap AS g USING (cluster, switch, hour_utc)  -- check, whole
    JOIN staging.port_readings AS r ON r.file_key = p.file_key AND r.offset_ms = g.end_ms  -- check
    GROUP BY ALL
),

ports AS (
    SELECT
        h.cluster,
        h.switch,
        h.hour_utc,
        sum(h.in_bytes) AS in_bytes,
        sum(h.missing_polls) AS missing_port_polls,
        sum(h.wraps) AS wraps,
        sum(t.zero_rows) AS zero_rows
    FROM metrics.port_hour AS h
    JOIN staging.port_files AS p USING (cluster, switch, port, hour_utc)  -- check
    JOIN staging.port_totals AS t USING (file_key)  -- check
    GROUP BY ALL
),

over_line_rate AS (
    SELECT p.cluster, p.switch, p.hour_utc, count(*) AS port_seconds
    FROM staging.port_seconds AS s
    JOIN staging.port_files AS p USING (file_key)  -- check of port_minute and port_hour
    WHERE greatest(s.in_bytes, s.out_bytes) * 8 > p.line_rate_bps
    GROUP BY ALL
),

middles AS (                   -- a counter that shows bytes was refreshed between two polls: in the mean, halfway
    SELECT
        cluster,
        switch,
        hour_utc,
        offset_ms // 600000 AS part,
        refreshed,
        pi() * (previous_ms + offset_ms) / 1000 AS angle
    FROM staging.switch_polls
    WHERE offset_ms - previous_ms < 1000 AND refreshed > 0
),

vectors AS (                   -- sums of integers, which are equal in any order; of ten minutes, and of the hour (part is NULL)
    SELECT
        cluster,
        switch,
        hour_utc,
        part,
        sum(refreshed)::BIGINT AS readings,
        sum(refreshed * round(1000000 * cos(angle))::BIGINT) AS x,  -- lint: allow last-bits because it is rounded
        sum(refreshed * round(1000000 * sin(angle))::BIGINT) AS y  -- lint: allow last-bits because it is rounded
    FROM middles
    GROUP BY GROUPING SETS ((cluster, switch, hour_utc, part), (cluster, switch, hour_utc))
),

phases AS (
    SELECT *, (round(500 * atan2(y, x) / pi())::INTEGER + 1000) % 1000 AS phase_ms  -- lint: allow last-bits because it is rounded
    FROM vectors
),

refreshes AS (
    SELECT
        h.cluster,
        h.switch,
        h.hour_utc,
        h.phase_ms,
        max(500 - abs(500 - abs(p.phase_ms - h.phase_ms))) AS spread_ms,
        h.readings
    FROM phases AS h
    JOIN phases AS p USING (cluster, switch, hour_utc)  -- grain
    WHERE h.part IS NULL AND p.part IS NOT NULL
    GROUP BY ALL
)

SELECT
    q.cluster,
    q.switch,
    q.hour_utc,
    q.polls,
    q.median_poll_ms,
    g.length_ms / 1000 AS opening_gap_seconds,
    coalesce(r.in_bytes, 0) / nullif(p.in_bytes, 0) AS gap_bytes_share,
    p.missing_port_polls,
    p.zero_rows,
    p.wraps,
    coalesce(o.port_seconds, 0) AS seconds_over_line_rate,
    f.phase_ms AS refresh_phase_ms,
    f.spread_ms AS refresh_spread_ms,
    f.readings AS refresh_readings
FROM polls AS q
JOIN ports AS p USING (cluster, switch, hour_utc)  -- check
LEFT JOIN gap_rows AS r USING (cluster, switch, hour_utc)  -- once
LEFT JOIN opening_gap AS g USING (cluster, switch, hour_utc)  -- once
LEFT JOIN over_line_rate AS o USING (cluster, switch, hour_utc)  -- once
LEFT JOIN refreshes AS f USING (cluster, switch, hour_utc)  -- once

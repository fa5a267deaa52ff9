/* ---
about: What a port moved in one hour, how full it was, and how well it was observed.
partition: hour_utc
grain: [cluster, switch, port, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  hour_utc: TIMESTAMP the hour
  polls: BIGINT [1] stored rows of the port
  missing_polls: BIGINT [1] poll times of the switch at which the port has no row; on busy ports, polls above line rate
  in_bytes: BIGINT [B] bytes that entered the switch through this port
  out_bytes: BIGINT [B] bytes that left the switch through this port
  in_packets: BIGINT [1] packets that entered
  out_packets: BIGINT [1] packets that left
  in_mean_bps: DOUBLE [bit/s] in_bytes x 8 / 3600
  in_utilization: DOUBLE [1] in_mean_bps over the line rate
  in_p50_bps: DOUBLE [bit/s] median over the hour's 3,600 seconds, those without traffic being 0
  in_p99_bps: DOUBLE [bit/s] 99th percentile over the same seconds
  in_max_bps: DOUBLE [bit/s] largest of the same seconds
  out_mean_bps: DOUBLE [bit/s] out_bytes x 8 / 3600
  out_utilization: DOUBLE [1] out_mean_bps over the line rate
  out_p50_bps: DOUBLE [bit/s] median over the hour's 3,600 seconds, those without traffic being 0
  out_p99_bps: DOUBLE [bit/s] 99th percentile over the same seconds
  out_max_bps: DOUBLE [bit/s] largest of the same seconds
  busy_seconds: BIGINT [s] seconds in which anything moved
  wraps: BIGINT [1] rows in which a 32-bit counter wrapped; 2^32 was added to each
  resets: BIGINT [1] rows with a negative delta that is no wrap; they count as 0
  flags: VARCHAR[] gap, missing_polls, no_refresh (in no row), reset, wrapped; see docs/glossary.md
checks:
  - total(in_bytes) = total(metrics.port_minute.in_bytes)
  - total(out_bytes) = total(metrics.port_minute.out_bytes)
  - references(cluster, switch, port) -> topology.ports(cluster, switch, port)
  - polls > 0 and missing_polls >= 0
  - busy_seconds between 0 and 3600
  - "warn: greatest(in_utilization, out_utilization) between 0 and 1.001"
sources: docs/metrics/rates.md
--- */
WITH switch_polls AS (
    SELECT p.hour_utc, p.cluster, p.switch, count(DISTINCT r.offset_ms) AS polls
    FROM staging.port_readings AS r
    JOIN staging.port_files AS p ON p.file_key = r.file_key
    GROUP BY p.hour_utc, p.cluster, p.switch
),

rows_of_port AS (
    SELECT
        file_key,
        count(*) AS polls,
        sum(in_packets) AS in_packets,
        sum(out_packets) AS out_packets,
        count(*) FILTER (WHERE in_bytes_raw < 0 OR out_bytes_raw < 0) AS negatives
    FROM staging.port_readings
    GROUP BY file_key
),

ports AS (
    SELECT
        p.hour_utc,
        p.cluster,
        p.switch,
        p.port,
        r.polls,
        s.polls - r.polls AS missing_polls,
        r.in_packets,
        r.out_packets,
        CASE WHEN p.is_management THEN r.negatives ELSE 0 END AS wraps,
        CASE WHEN p.is_management THEN 0 ELSE r.negatives END AS resets,
        t.line_rate_bps
    FROM staging.port_files AS p
    JOIN rows_of_port AS r ON r.file_key = p.file_key
    JOIN switch_polls AS s ON s.hour_utc = p.hour_utc AND s.cluster = p.cluster AND s.switch = p.switch
    JOIN topology.ports AS t ON t.cluster = p.cluster AND t.switch = p.switch AND t.port = p.port
),

seen AS (                      -- how many of the hour's 3,600 seconds a port has rows for
    SELECT cluster, switch, port, hour_utc, count(*) AS seconds, bool_or(quality = 'gap') AS has_gap
    FROM metrics.port_second
    GROUP BY cluster, switch, port, hour_utc
),

whole_hour AS (                -- all 3,600: those that are there, and a zero for each that is not
    SELECT cluster, switch, port, hour_utc, in_bytes, out_bytes
    FROM metrics.port_second
    UNION ALL
    SELECT p.cluster, p.switch, p.port, p.hour_utc, 0 AS in_bytes, 0 AS out_bytes
    FROM (
        SELECT p.cluster, p.switch, p.port, p.hour_utc, unnest(range(3600 - coalesce(s.seconds, 0))) AS absent
        FROM ports AS p
        LEFT JOIN seen AS s
            ON s.cluster = p.cluster AND s.switch = p.switch AND s.port = p.port AND s.hour_utc = p.hour_utc
    ) AS p
),

moved AS (
    SELECT
        cluster,
        switch,
        port,
        hour_utc,
        sum(in_bytes) AS in_bytes,
        sum(out_bytes) AS out_bytes,
        quantile_cont(in_bytes, 0.5) AS in_p50,
        quantile_cont(in_bytes, 0.99) AS in_p99,
        max(in_bytes) AS in_max,
        quantile_cont(out_bytes, 0.5) AS out_p50,
        quantile_cont(out_bytes, 0.99) AS out_p99,
        max(out_bytes) AS out_max,
        count(*) FILTER (WHERE in_bytes + out_bytes > 0) AS busy_seconds
    FROM whole_hour
    GROUP BY cluster, switch, port, hour_utc
)

SELECT
    p.cluster,
    p.switch,
    p.port,
    p.hour_utc,
    p.polls,
    p.missing_polls,
    m.in_bytes,
    m.out_bytes,
    p.in_packets,
    p.out_packets,
    m.in_bytes * 8 / 3600 AS in_mean_bps,
    m.in_bytes * 8 / 3600 / p.line_rate_bps AS in_utilization,
    m.in_p50 * 8 AS in_p50_bps,
    m.in_p99 * 8 AS in_p99_bps,
    m.in_max * 8 AS in_max_bps,
    m.out_bytes * 8 / 3600 AS out_mean_bps,
    m.out_bytes * 8 / 3600 / p.line_rate_bps AS out_utilization,
    m.out_p50 * 8 AS out_p50_bps,
    m.out_p99 * 8 AS out_p99_bps,
    m.out_max * 8 AS out_max_bps,
    m.busy_seconds,
    p.wraps,
    p.resets,
    list_filter(
        [
            CASE WHEN s.has_gap THEN 'gap' END,
            CASE WHEN p.missing_polls > 0 THEN 'missing_polls' END,
            CASE WHEN s.seconds IS NULL THEN 'no_refresh' END,
            CASE WHEN p.resets > 0 THEN 'reset' END,
            CASE WHEN p.wraps > 0 THEN 'wrapped' END
        ],
        lambda flag: flag IS NOT NULL
    ) AS flags
FROM ports AS p
JOIN moved AS m
    ON m.cluster = p.cluster AND m.switch = p.switch AND m.port = p.port AND m.hour_utc = p.hour_utc
LEFT JOIN seen AS s
    ON s.cluster = p.cluster AND s.switch = p.switch AND s.port = p.port AND s.hour_utc = p.hour_utc

/* ---
about: Bytes, utilization and observation quality of a port in one hour.
partition: hour_utc
grain: [cluster, switch, port, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  port_class: VARCHAR access, uplink, spare, management, storage_access or storage_uplink
  line_rate_bps: BIGINT [bit/s] 200e9, 400e9, management 1e9
  hour_utc: TIMESTAMP the hour
  polls: BIGINT [1] stored rows of the port
  missing_polls: BIGINT [1] poll times of the switch without a row of the port; on busy ports, polls above line rate
  in_bytes: BIGINT [B] bytes that entered the switch through this port
  out_bytes: BIGINT [B] bytes that left the switch through this port
  in_packets: BIGINT [1] packets that entered
  out_packets: BIGINT [1] packets that left
  in_mean_bps: DOUBLE [bit/s] in_bytes x 8 / 3600
  in_utilization: DOUBLE [1] in_mean_bps over the line rate
  in_p50_bps: DOUBLE [bit/s] median over the hour's 3,600 seconds; seconds without traffic count as 0
  in_p99_bps: DOUBLE [bit/s] 99th percentile over the same seconds
  in_max_bps: DOUBLE [bit/s] largest value of the same seconds
  out_mean_bps: DOUBLE [bit/s] out_bytes x 8 / 3600
  out_utilization: DOUBLE [1] out_mean_bps over the line rate
  out_p50_bps: DOUBLE [bit/s] median over the hour's 3,600 seconds; seconds without traffic count as 0
  out_p99_bps: DOUBLE [bit/s] 99th percentile over the same seconds
  out_max_bps: DOUBLE [bit/s] largest value of the same seconds
  busy_seconds: BIGINT [s] seconds with bytes in or out
  full_seconds: BIGINT [s] seconds above 90 % of the line rate, in or out
  wraps: BIGINT [1] rows in which a 32-bit counter wrapped; 2^32 was added to each
  resets: BIGINT [1] rows with a negative delta that is no wrap; they count as 0
  flags: VARCHAR[] gap, missing_polls, no_refresh (no row had a refresh), reset, wrapped; see docs/glossary.md
time: hour_utc
dimensions: [cluster, switch, port, port_class]
measures:
  in_bytes, out_bytes: sum, shown in GB
  line_rate_bps: sum except over hour_utc, shown in Gbit/s
  in_packets, out_packets, polls, missing_polls, wraps, resets: sum
  in_mean_bps, out_mean_bps: sum except over hour_utc, shown in Gbit/s
  in_utilization: in_mean_bps / line_rate_bps, shown in %
  out_utilization: out_mean_bps / line_rate_bps, shown in %
  in_p50_bps, in_p99_bps, out_p50_bps, out_p99_bps: none, shown in Gbit/s
  in_max_bps, out_max_bps: max, shown in Gbit/s
  busy_seconds: sum except over switch, port
  full_seconds: sum
checks:
  - total(in_bytes) = total(metrics.port_minute.in_bytes)
  - total(out_bytes) = total(metrics.port_minute.out_bytes)
  - total(in_packets) = total(staging.port_totals.in_packets)
  - total(out_packets) = total(staging.port_totals.out_packets)
  - polls > 0 and missing_polls >= 0
  - busy_seconds between 0 and 3600 and full_seconds between 0 and busy_seconds
  - warn: greatest(in_utilization, out_utilization) between 0 and 1.001
    says: "{switch} {port} is above its line rate in the mean of an hour: {in_utilization:.1%} in, {out_utilization:.1%} out"
sources: docs/metrics/rates.md
--- */
WITH switch_polls AS (
    SELECT cluster, switch, hour_utc, count(*) AS polls
    FROM staging.switch_polls
    GROUP BY ALL
),

seen AS (                      -- number of the hour's 3,600 seconds with a row of the port
    SELECT file_key, count(*) AS seconds, max(longest_ms) > 10000 AS has_gap
    FROM staging.port_seconds
    GROUP BY file_key
),

whole_hour AS (                -- all 3,600 seconds: stored seconds, and 0 for each missing second
    SELECT file_key, in_bytes, out_bytes
    FROM staging.port_seconds
    UNION ALL
    SELECT file_key, 0 AS in_bytes, 0 AS out_bytes
    FROM (
        SELECT p.file_key, unnest(range(3600 - coalesce(s.seconds, 0))) AS absent
        FROM staging.port_files AS p
        LEFT JOIN seen AS s USING (file_key)  -- once
    ) AS zeros
),

moved AS (
    SELECT
        file_key,
        sum(in_bytes) AS in_bytes,
        sum(out_bytes) AS out_bytes,
        quantile_cont(in_bytes, [0.5, 0.99]) AS in_p50_p99,      -- one list of both quantiles takes half the memory of two calls
        max(in_bytes) AS in_max,
        quantile_cont(out_bytes, [0.5, 0.99]) AS out_p50_p99,
        max(out_bytes) AS out_max,
        count(*) FILTER (WHERE in_bytes + out_bytes > 0) AS busy_seconds,
        count(*) FILTER (WHERE greatest(in_bytes, out_bytes) * 80 > line_rate_bps * 9) AS full_seconds
    FROM whole_hour
    JOIN staging.port_files USING (file_key)  -- whole
    GROUP BY file_key
)

SELECT
    p.cluster,
    p.switch,
    p.port,
    p.port_class,
    p.line_rate_bps,
    p.hour_utc,
    r.polls,
    q.polls - r.polls AS missing_polls,
    m.in_bytes,
    m.out_bytes,
    r.in_packets,
    r.out_packets,
    m.in_bytes * 8 / 3600 AS in_mean_bps,
    m.in_bytes * 8 / 3600 / p.line_rate_bps AS in_utilization,
    m.in_p50_p99[1] * 8 AS in_p50_bps,
    m.in_p50_p99[2] * 8 AS in_p99_bps,
    m.in_max * 8 AS in_max_bps,
    m.out_bytes * 8 / 3600 AS out_mean_bps,
    m.out_bytes * 8 / 3600 / p.line_rate_bps AS out_utilization,
    m.out_p50_p99[1] * 8 AS out_p50_bps,
    m.out_p50_p99[2] * 8 AS out_p99_bps,
    m.out_max * 8 AS out_max_bps,
    m.busy_seconds,
    m.full_seconds,
    r.wraps,
    r.resets,
    list_filter(
        [
            CASE WHEN s.has_gap THEN 'gap' END,
            CASE WHEN q.polls > r.polls THEN 'missing_polls' END,
            CASE WHEN s.file_key IS NULL THEN 'no_refresh' END,
            CASE WHEN r.resets > 0 THEN 'reset' END,
            CASE WHEN r.wraps > 0 THEN 'wrapped' END
        ],
        LAMBDA flag: flag IS NOT NULL
    ) AS flags
FROM staging.port_files AS p
JOIN staging.port_totals AS r USING (file_key)  -- check
JOIN switch_polls AS q ON q.hour_utc = p.hour_utc AND q.cluster = p.cluster AND q.switch = p.switch  -- check
JOIN moved AS m USING (file_key)  -- check
LEFT JOIN seen AS s USING (file_key)  -- once

/* ---
about: 'Every stored poll of every port, with names, UTC times, corrected bytes, the window in which the bytes moved, and flags. Filter by hour, switch or port: each query computes the windows of the rows that it selects.'
partition: [hour_utc, switch]
grain: [cluster, switch, port, time_utc]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  hour_utc: TIMESTAMP the hour
  time_utc: TIMESTAMP time of the poll
  in_bytes: BIGINT [B] bytes that entered the switch since the port's previous row, corrected for wraps
  out_bytes: BIGINT [B] bytes that left the switch since the port's previous row, corrected for wraps
  in_bytes_raw: BIGINT [B] the same counter as stored
  out_bytes_raw: BIGINT [B] the same counter as stored
  in_packets: BIGINT [1] packets that entered
  out_packets: BIGINT [1] packets that left
  published_in_ratio: DOUBLE [%] as published; a check, never an input
  published_out_ratio: DOUBLE [%] as published; a check, never an input
  window_start_utc: TIMESTAMP start of the window in which the row's bytes moved; NULL where the counters had not refreshed
  flags: VARCHAR[] first, gap, missing_polls, no_refresh, reset, wrapped; see docs/glossary.md
sources: docs/metrics/rates.md
--- */
WITH named AS (
    SELECT
        p.cluster,
        p.switch,
        p.port,
        p.is_management,
        r.file_key,
        r.hour_utc,
        r.offset_ms,
        r.in_bytes_raw,
        r.out_bytes_raw,
        r.in_packets,
        r.out_packets,
        r.published_in_ratio,
        r.published_out_ratio,
        lag(r.offset_ms) OVER (
            PARTITION BY r.file_key, r.hour_utc, p.switch, p.port ORDER BY r.offset_ms
        ) AS previous_ms
    FROM staging.port_readings AS r
    JOIN staging.port_files AS p ON p.file_key = r.file_key
),

corrected AS (
    SELECT
        *,
        {{ corrected_bytes('in_bytes_raw', 'is_management', 'offset_ms - previous_ms') }} AS in_bytes,
        {{ corrected_bytes('out_bytes_raw', 'is_management', 'offset_ms - previous_ms') }} AS out_bytes,
        {{ is_wrap('in_bytes_raw', 'is_management', 'offset_ms - previous_ms') }}
        OR {{ is_wrap('out_bytes_raw', 'is_management', 'offset_ms - previous_ms') }} AS is_wrapped,
        {{ is_reset('in_bytes_raw', 'is_management', 'offset_ms - previous_ms') }}
        OR {{ is_reset('out_bytes_raw', 'is_management', 'offset_ms - previous_ms') }} AS is_reset
    FROM named
),

marked AS (
    SELECT
        *,
        in_bytes <> 0 OR out_bytes <> 0 AS is_refresh
    FROM corrected
),

placed AS (                    -- hour, switch and port come from the file, so that a filter on them also selects its rows
    SELECT
        *,
        make_timestamp(epoch_us(hour_utc) + CAST(offset_ms AS BIGINT) * 1000) AS time_utc,
        min(offset_ms) OVER file AS first_ms,
        lag(CASE WHEN is_refresh THEN offset_ms END IGNORE NULLS) OVER before AS refresh_ms
    FROM marked
    WINDOW
        file AS (PARTITION BY file_key, hour_utc, switch, port),
        before AS (PARTITION BY file_key, hour_utc, switch, port ORDER BY offset_ms)
),

described AS (
    SELECT
        r.*,
        CASE WHEN r.is_refresh THEN {{ window_start('r.previous_ms', 'coalesce(r.refresh_ms, r.first_ms)') }} END
            AS window_start_ms,
        r.previous_ms < s.previous_ms AS is_after_missing
    FROM placed AS r
    JOIN staging.switch_polls AS s USING (cluster, switch, hour_utc, offset_ms)
)

SELECT
    cluster,
    switch,
    port,
    hour_utc,
    time_utc,
    in_bytes,
    out_bytes,
    in_bytes_raw,
    out_bytes_raw,
    in_packets,
    out_packets,
    published_in_ratio,
    published_out_ratio,
    make_timestamp(epoch_us(hour_utc) + CAST(window_start_ms AS BIGINT) * 1000) AS window_start_utc,
    list_filter(
        [
            CASE WHEN previous_ms IS NULL THEN 'first' END,
            CASE WHEN offset_ms - window_start_ms > 10000 THEN 'gap' END,
            CASE WHEN is_after_missing THEN 'missing_polls' END,
            CASE WHEN NOT is_refresh THEN 'no_refresh' END,
            CASE WHEN is_reset THEN 'reset' END,
            CASE WHEN is_wrapped THEN 'wrapped' END
        ],
        LAMBDA flag: flag IS NOT NULL
    ) AS flags
FROM described

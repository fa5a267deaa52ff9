/* ---
about: Every stored poll of every port, with names, UTC times, corrected bytes, the window that the bytes were moved in, and flags.
partition: hour_utc
grain: [cluster, switch, port, time_utc]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  hour_utc: TIMESTAMP the hour
  time_utc: TIMESTAMP time of the poll
  in_bytes: BIGINT [B] bytes that entered the switch since the port's previous row, wraps corrected
  out_bytes: BIGINT [B] bytes that left the switch since the port's previous row, wraps corrected
  in_bytes_raw: BIGINT [B] the same as stored
  out_bytes_raw: BIGINT [B] the same as stored
  in_packets: BIGINT [1] packets that entered
  out_packets: BIGINT [1] packets that left
  published_in_ratio: DOUBLE [%] as published; a check, never an input
  published_out_ratio: DOUBLE [%] as published; a check, never an input
  window_start_utc: TIMESTAMP when the row's bytes began to count; NULL where the counters had not refreshed
  flags: VARCHAR[] first, gap, missing_polls, no_refresh, reset, wrapped; see docs/glossary.md
sources: docs/metrics/rates.md
--- */
WITH readings AS (
    SELECT
        *,
        lag(offset_ms) OVER (PARTITION BY file_key ORDER BY offset_ms) AS previous_ms
    FROM staging.port_readings
),

described AS (
    SELECT
        p.cluster,
        p.switch,
        p.port,
        r.hour_utc,
        make_timestamp(epoch_us(r.hour_utc) + CAST(r.offset_ms AS BIGINT) * 1000) AS time_utc,
        r.in_bytes_raw,
        r.out_bytes_raw,
        r.in_packets,
        r.out_packets,
        r.published_in_ratio,
        r.published_out_ratio,
        w.in_bytes,
        w.out_bytes,
        make_timestamp(epoch_us(r.hour_utc) + CAST(w.window_start_ms AS BIGINT) * 1000) AS window_start_utc,
        w.offset_ms - w.window_start_ms > 10000 AS is_gap,
        w.offset_ms IS NULL AS is_unrefreshed,
        r.previous_ms IS NULL AS is_first,
        r.previous_ms < s.previous_ms AS is_after_missing,
        (r.in_bytes_raw < 0 OR r.out_bytes_raw < 0) AND p.is_management AS is_wrapped,
        (r.in_bytes_raw < 0 OR r.out_bytes_raw < 0) AND NOT p.is_management AS is_reset
    FROM readings AS r
    JOIN staging.port_files AS p ON p.file_key = r.file_key
    JOIN staging.switch_polls AS s
        ON
            s.cluster = p.cluster
            AND s.switch = p.switch
            AND s.hour_utc = r.hour_utc
            AND s.offset_ms = r.offset_ms
    LEFT JOIN staging.port_windows AS w
        ON w.file_key = r.file_key AND w.offset_ms = r.offset_ms
)

SELECT
    cluster,
    switch,
    port,
    hour_utc,
    time_utc,
    coalesce(in_bytes, 0) AS in_bytes,
    coalesce(out_bytes, 0) AS out_bytes,
    in_bytes_raw,
    out_bytes_raw,
    in_packets,
    out_packets,
    published_in_ratio,
    published_out_ratio,
    window_start_utc,
    list_filter(
        [
            CASE WHEN is_first THEN 'first' END,
            CASE WHEN is_gap THEN 'gap' END,
            CASE WHEN is_after_missing THEN 'missing_polls' END,
            CASE WHEN is_unrefreshed THEN 'no_refresh' END,
            CASE WHEN is_reset THEN 'reset' END,
            CASE WHEN is_wrapped THEN 'wrapped' END
        ],
        LAMBDA flag: flag IS NOT NULL
    ) AS flags
FROM described

/* ---
about: The window of time in which each row's bytes moved. A switch refreshes a port's counters about once a second, so half of the polls show no bytes. Their time belongs to the next row with bytes, up to one refresh period before the last poll without.
partition: [hour_utc, switch]
grain: [file_key, offset_ms]
materialize: view
columns:
  file_key: BIGINT [1] the port and hour, see staging.port_files
  hour_utc: TIMESTAMP the hour
  switch: VARCHAR short name of the switch
  offset_ms: INTEGER [ms] end of the window, which is the time of the poll, since the start of the hour
  window_start_ms: INTEGER [ms] start of the window since the start of the hour
  in_bytes: BIGINT [B] bytes that entered in the window, corrected for wraps
  out_bytes: BIGINT [B] bytes that left in the window, corrected for wraps
sources: docs/metrics/rates.md
--- */
WITH polls AS (                -- every row with the time of the previous row
    SELECT
        r.file_key,
        r.hour_utc,
        r.switch,
        r.offset_ms,
        r.in_bytes_raw,
        r.out_bytes_raw,
        p.is_management,
        lag(r.offset_ms) OVER (PARTITION BY r.file_key ORDER BY r.offset_ms) AS previous_ms
    FROM staging.port_readings AS r
    JOIN staging.port_files AS p ON p.file_key = r.file_key
),

corrected AS (                 -- a negative delta is a possible wrap of a management port; any other is a reset and left out
    SELECT
        file_key,
        hour_utc,
        switch,
        offset_ms,
        previous_ms,
        {{ corrected_bytes('in_bytes_raw', 'is_management', 'offset_ms - previous_ms') }} AS in_bytes,
        {{ corrected_bytes('out_bytes_raw', 'is_management', 'offset_ms - previous_ms') }} AS out_bytes
    FROM polls
),

anchors AS (                   -- rows at which a window can start: refreshes, and the port's first row
    SELECT
        *,
        lag(offset_ms) OVER (PARTITION BY file_key ORDER BY offset_ms) AS anchor_ms
    FROM corrected
    WHERE in_bytes <> 0 OR out_bytes <> 0 OR previous_ms IS NULL
)

SELECT
    file_key,
    hour_utc,
    switch,
    offset_ms,
    {{ window_start('previous_ms', 'anchor_ms') }} AS window_start_ms,
    in_bytes,
    out_bytes
FROM anchors
WHERE in_bytes <> 0 OR out_bytes <> 0

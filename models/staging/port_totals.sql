/* ---
about: Sums over the stored rows of each port file, before any bytes are spread over time.
partition: [hour_utc, switch]
grain: [file_key]
columns:
  file_key: BIGINT [1] the port and hour, see staging.port_files
  hour_utc: TIMESTAMP the hour
  switch: VARCHAR short name of the switch
  polls: BIGINT [1] stored rows
  in_bytes: BIGINT [B] bytes that entered, corrected for wraps; a reset counts as 0
  out_bytes: BIGINT [B] bytes that left, corrected for wraps; a reset counts as 0
  in_packets: BIGINT [1] packets that entered
  out_packets: BIGINT [1] packets that left
  zero_rows: BIGINT [1] rows without bytes in or out
  wraps: 'BIGINT [1] rows in which a 32-bit counter wrapped: a negative delta that is possible at line rate after adding 2^32'
  resets: BIGINT [1] rows with a negative delta that is no wrap; a row can count as both, one per direction
checks:
  - polls > 0
  - zero_rows + greatest(wraps, resets) <= polls
sources: docs/metrics/rates.md
--- */
WITH sums AS (
    SELECT
        file_key,
        count(*) AS polls,
        sum(greatest(in_bytes_raw, 0)) AS in_bytes,
        sum(greatest(out_bytes_raw, 0)) AS out_bytes,
        sum(in_packets) AS in_packets,
        sum(out_packets) AS out_packets,
        count(*) FILTER (WHERE in_bytes_raw = 0 AND out_bytes_raw = 0) AS zero_rows
    FROM staging.port_readings
    GROUP BY file_key
),

falling AS (                   -- files with a negative delta: only their rows need the time of the previous row
    SELECT DISTINCT file_key
    FROM staging.port_readings
    WHERE in_bytes_raw < 0 OR out_bytes_raw < 0
),

timed AS (
    SELECT
        r.file_key,
        r.in_bytes_raw,
        r.out_bytes_raw,
        p.is_management,
        r.offset_ms - lag(r.offset_ms) OVER (PARTITION BY r.file_key ORDER BY r.offset_ms) AS interval_ms
    FROM staging.port_readings AS r
    JOIN falling AS f ON f.file_key = r.file_key
    JOIN staging.port_files AS p ON p.file_key = r.file_key
),

marked AS (
    SELECT
        file_key,
        CASE WHEN in_bytes_raw < 0 THEN {{ corrected_bytes('in_bytes_raw', 'is_management', 'interval_ms') }} ELSE 0 END
            AS in_bytes,
        CASE WHEN out_bytes_raw < 0 THEN {{ corrected_bytes('out_bytes_raw', 'is_management', 'interval_ms') }} ELSE 0 END
            AS out_bytes,
        {{ is_wrap('in_bytes_raw', 'is_management', 'interval_ms') }}
        OR {{ is_wrap('out_bytes_raw', 'is_management', 'interval_ms') }} AS is_wrap,
        {{ is_reset('in_bytes_raw', 'is_management', 'interval_ms') }}
        OR {{ is_reset('out_bytes_raw', 'is_management', 'interval_ms') }} AS is_reset
    FROM timed
),

corrections AS (               -- bytes that wraps add to the sums
    SELECT
        file_key,
        sum(in_bytes) AS in_bytes,
        sum(out_bytes) AS out_bytes,
        count(*) FILTER (WHERE is_wrap) AS wraps,
        count(*) FILTER (WHERE is_reset) AS resets
    FROM marked
    GROUP BY file_key
)

SELECT
    p.file_key,
    p.hour_utc,
    p.switch,
    s.polls,
    s.in_bytes + coalesce(c.in_bytes, 0) AS in_bytes,
    s.out_bytes + coalesce(c.out_bytes, 0) AS out_bytes,
    s.in_packets,
    s.out_packets,
    s.zero_rows,
    coalesce(c.wraps, 0) AS wraps,
    coalesce(c.resets, 0) AS resets
FROM sums AS s
JOIN staging.port_files AS p ON p.file_key = s.file_key
LEFT JOIN corrections AS c ON c.file_key = s.file_key

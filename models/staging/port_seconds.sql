/* ---
about: Bytes of every port in each second that one of its windows overlaps. A switch refreshes a port's counters about once a second, so half of the polls show no bytes; their time belongs to the window of the next poll with bytes. A window's bytes are spread evenly over its time, in whole bytes that sum exactly to the window's. Read metrics.port_second for names and times.
partition: [hour_utc, switch]
grain: [file_key, second]
columns:
  file_key: BIGINT [1] the port and hour, see staging.port_files
  hour_utc: TIMESTAMP the hour
  switch: VARCHAR short name of the switch
  second: INTEGER [s] second of the hour
  in_bytes: BIGINT [B] bytes that entered the switch in this second
  out_bytes: BIGINT [B] bytes that left the switch in this second
  covered_ms: INTEGER [ms] milliseconds of the second that windows cover
  longest_ms: INTEGER [ms] longest window that overlaps the second
checks:
  # stored bytes equal the sum over seconds, for each port
  - none: WITH spread AS (SELECT file_key, sum(in_bytes) AS in_bytes, sum(out_bytes) AS out_bytes FROM this GROUP BY file_key)
      SELECT * FROM staging.port_totals AS t LEFT JOIN spread AS s USING (file_key)
      WHERE t.in_bytes <> coalesce(s.in_bytes, 0) OR t.out_bytes <> coalesce(s.out_bytes, 0)
  - covered_ms between 1 and 1000 and in_bytes >= 0 and out_bytes >= 0 and second between 0 and 3599
sources: docs/metrics/rates.md
--- */
WITH polls AS (                -- every row with the time of the previous row
    SELECT
        r.file_key,
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
),

windows AS (                   -- from the last refresh, at most 1 s before the last poll without bytes, to the poll; 1 ms in the hour's first one
    SELECT
        file_key,
        {{ window_start('previous_ms', 'anchor_ms') }} AS start_ms,
        greatest(offset_ms, start_ms + 1) AS end_ms,
        in_bytes,
        out_bytes
    FROM anchors
    WHERE in_bytes <> 0 OR out_bytes <> 0
),

touched AS (                   -- one row per window and second that it overlaps
    SELECT
        file_key,
        start_ms,
        end_ms,
        end_ms - start_ms AS length_ms,
        in_bytes,
        out_bytes,
        unnest(range(start_ms // 1000, (end_ms - 1) // 1000 + 1)) AS second
    FROM windows
),

pieces AS (                    -- the part of the window inside the second, as offsets from the window's start
    SELECT
        file_key,
        second,
        length_ms,
        greatest(second * 1000, start_ms) - start_ms AS a,
        least(second * 1000 + 1000, end_ms) - start_ms AS b,
        in_bytes // length_ms AS in_whole,
        in_bytes % length_ms AS in_rest,
        out_bytes // length_ms AS out_whole,
        out_bytes % length_ms AS out_rest
    FROM touched
),

summed AS (                    -- floor(bytes * b / length) - floor(bytes * a / length), without overflow
    SELECT
        file_key,
        second,
        sum(in_whole * (b - a) + in_rest * b // length_ms - in_rest * a // length_ms) AS in_bytes,
        sum(out_whole * (b - a) + out_rest * b // length_ms - out_rest * a // length_ms) AS out_bytes,
        sum(b - a) AS covered_ms,
        max(length_ms) AS longest_ms
    FROM pieces
    GROUP BY ALL
)

SELECT
    file_key,
    f.hour_utc,
    f.switch,
    s.second,
    s.in_bytes,
    s.out_bytes,
    s.covered_ms,
    s.longest_ms
FROM summed AS s
JOIN staging.port_files AS f USING (file_key)

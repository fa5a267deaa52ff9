/* ---
about: What every port moved in each second that one of its windows touches. A window's bytes are spread evenly over it, in whole bytes that add up to the window's exactly.
partition: hour_utc
grain: [cluster, switch, port, second_utc]
presorted: true
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  second_utc: TIMESTAMP start of the second
  hour_utc: TIMESTAMP the hour
  in_bytes: BIGINT [B] bytes that entered the switch in this second
  out_bytes: BIGINT [B] bytes that left the switch in this second
  covered_ms: INTEGER [ms] how much of the second windows cover
  quality: VARCHAR by the longest window that touches the second, fine (up to 2 s), coarse (up to 10 s), gap
checks:
  # what was stored and what the seconds add up to, port by port: wraps get 2^32, resets count as 0
  - none: WITH stored AS (SELECT p.cluster, p.switch, p.port,
      sum(CASE WHEN r.in_bytes_raw >= 0 THEN r.in_bytes_raw WHEN p.is_management THEN r.in_bytes_raw + 4294967296 ELSE 0 END) AS in_bytes,
      sum(CASE WHEN r.out_bytes_raw >= 0 THEN r.out_bytes_raw WHEN p.is_management THEN r.out_bytes_raw + 4294967296 ELSE 0 END) AS out_bytes
      FROM staging.port_readings AS r JOIN staging.port_files AS p USING (file_key) GROUP BY ALL),
      spread AS (SELECT cluster, switch, port, sum(in_bytes) AS in_bytes, sum(out_bytes) AS out_bytes FROM this GROUP BY ALL)
      SELECT * FROM stored LEFT JOIN spread USING (cluster, switch, port)
      WHERE stored.in_bytes <> coalesce(spread.in_bytes, 0) OR stored.out_bytes <> coalesce(spread.out_bytes, 0)
  - covered_ms between 1 and 1000
  - in_bytes >= 0 and out_bytes >= 0
sources: docs/metrics/rates.md
--- */
WITH touched AS (              -- a row a window and second that it touches
    SELECT
        file_key,
        window_start_ms,
        offset_ms,
        offset_ms - window_start_ms AS length_ms,
        in_bytes,
        out_bytes,
        unnest(range(window_start_ms // 1000, (offset_ms - 1) // 1000 + 1)) AS second
    FROM staging.port_windows
),

pieces AS (                    -- the piece of the window inside the second, as offsets from the window's start
    SELECT
        file_key,
        second,
        length_ms,
        greatest(second * 1000, window_start_ms) - window_start_ms AS a,
        least(second * 1000 + 1000, offset_ms) - window_start_ms AS b,
        in_bytes // length_ms AS in_whole,
        in_bytes % length_ms AS in_rest,
        out_bytes // length_ms AS out_whole,
        out_bytes % length_ms AS out_rest
    FROM touched
),

seconds AS (                   -- floor(bytes * b / length) - floor(bytes * a / length), without overflow
    SELECT
        file_key,
        second,
        sum(in_whole * (b - a) + in_rest * b // length_ms - in_rest * a // length_ms) AS in_bytes,
        sum(out_whole * (b - a) + out_rest * b // length_ms - out_rest * a // length_ms) AS out_bytes,
        sum(b - a) AS covered_ms,
        max(length_ms) AS longest_ms
    FROM pieces
    GROUP BY file_key, second
    ORDER BY file_key, second
)

SELECT
    p.cluster,
    p.switch,
    p.port,
    make_timestamp(epoch_us(p.hour_utc) + s.second * 1000000) AS second_utc,
    p.hour_utc,
    s.in_bytes,
    s.out_bytes,
    s.covered_ms,
    CASE WHEN s.longest_ms <= 2000 THEN 'fine' WHEN s.longest_ms <= 10000 THEN 'coarse' ELSE 'gap' END AS quality
FROM seconds AS s
JOIN staging.port_files AS p ON p.file_key = s.file_key

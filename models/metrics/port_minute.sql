/* ---
about: Bytes of every port in each minute, summed over its rows of staging.port_seconds, one for each second that a window with bytes overlaps; a minute without such a second has no row.
partition: [hour_utc, switch]
grain: [cluster, switch, port, minute_utc]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  minute_utc: TIMESTAMP start of the minute
  hour_utc: TIMESTAMP the hour
  in_bytes: BIGINT [B] bytes that entered the switch in this minute
  out_bytes: BIGINT [B] bytes that left the switch in this minute
  covered_ms: INTEGER [ms] milliseconds of the minute that windows with bytes cover; a window is the time in which the bytes of one poll moved, in and out alike
  quality: 'VARCHAR quality of its worst second, by the longest window that overlaps it: fine (up to 2 s), coarse (up to 10 s) or gap (longer, as polls are missing)'
time: minute_utc
dimensions: [cluster, switch, port, quality]
measures:
  in_bytes, out_bytes: sum, shown in GB
  covered_ms: sum except over switch, port, shown in s
checks:
  - total(in_bytes) = total(metrics.port_second.in_bytes)
  - total(out_bytes) = total(metrics.port_second.out_bytes)
sources: docs/metrics/rates.md
--- */
WITH minutes AS (              -- file_key is a port in an hour, second is 0 to 3599
    SELECT
        file_key,
        second // 60 AS minute,
        sum(in_bytes) AS in_bytes,
        sum(out_bytes) AS out_bytes,
        sum(covered_ms) AS covered_ms,
        max(longest_ms) AS longest_ms
    FROM staging.port_seconds
    GROUP BY ALL
)

SELECT
    p.cluster,
    p.switch,
    p.port,
    p.hour_utc + to_minutes(m.minute) AS minute_utc,
    p.hour_utc,
    m.in_bytes,
    m.out_bytes,
    m.covered_ms,
    CASE WHEN m.longest_ms <= 2000 THEN 'fine' WHEN m.longest_ms <= 10000 THEN 'coarse' ELSE 'gap' END AS quality
FROM minutes AS m
JOIN staging.port_files AS p USING (file_key)  -- check

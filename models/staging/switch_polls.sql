/* ---
about: Poll times of each switch. All ports of a switch are polled together; a port without a row at a poll was above line rate.
partition: hour_utc
grain: [cluster, switch, hour_utc, offset_ms]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  hour_utc: TIMESTAMP the hour
  offset_ms: INTEGER [ms] time of the poll since the start of the hour
  previous_ms: INTEGER [ms] time of the previous poll; NULL for the first
  refreshed: INTEGER [1] access ports with bytes at this poll, that is whose counter was refreshed since the last
checks:
  - previous_ms < offset_ms or previous_ms is null
sources: docs/metrics/rates.md
--- */
WITH polls AS (
    SELECT
        p.cluster,
        p.switch,
        p.hour_utc,
        r.offset_ms,
        count(*) FILTER (ends_with(p.port_class, 'access') AND (r.in_bytes_raw <> 0 OR r.out_bytes_raw <> 0)) AS refreshed
    FROM staging.port_readings AS r
    JOIN staging.port_files AS p USING (file_key)
    GROUP BY ALL
)

SELECT
    cluster,
    switch,
    hour_utc,
    offset_ms,
    lag(offset_ms) OVER (PARTITION BY cluster, switch, hour_utc ORDER BY offset_ms) AS previous_ms,
    refreshed
FROM polls

/* ---
about: Start of each pulse of a server's traffic, and time since the previous pulse, for servers whose period is resolved.
partition: hour_utc
grain: [cluster, server, hour_utc, pulse]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  hour_utc: TIMESTAMP the hour
  pulse: INTEGER [1] number of the pulse in the hour, from 1
  start_utc: TIMESTAMP start of the pulse, as seen on the server's ports
  interval_seconds: DOUBLE [s] time since the start of the previous pulse; NULL for the first of the hour
time: start_utc
measures:
  interval_seconds: mean
checks:
  - interval_seconds > 0 or interval_seconds is null
sources: docs/metrics/periods.md
--- */
WITH starts AS (
    SELECT
        cluster,
        server,
        hour_utc,
        unnest(starts_ms) AS start_ms
    FROM metrics.traffic_periods
    WHERE period_seconds IS NOT NULL
)

SELECT
    cluster,
    server,
    hour_utc,
    row_number() OVER (PARTITION BY cluster, server, hour_utc ORDER BY start_ms) AS pulse,
    hour_utc + to_milliseconds(start_ms) AS start_utc,
    (start_ms - lag(start_ms) OVER (PARTITION BY cluster, server, hour_utc ORDER BY start_ms)) / 1000
        AS interval_seconds
FROM starts

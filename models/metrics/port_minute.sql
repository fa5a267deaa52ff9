/* ---
about: What every port moved in each minute, the sum of its seconds.
partition: hour_utc
grain: [cluster, switch, port, minute_utc]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  minute_utc: TIMESTAMP start of the minute
  hour_utc: TIMESTAMP the hour
  in_bytes: BIGINT [B] bytes that entered the switch in this minute
  out_bytes: BIGINT [B] bytes that left the switch in this minute
  covered_ms: INTEGER [ms] how much of the minute windows cover
  quality: VARCHAR the worst of its seconds, fine, coarse or gap
checks:
  - total(in_bytes) = total(metrics.port_second.in_bytes)
  - total(out_bytes) = total(metrics.port_second.out_bytes)
sources: docs/metrics/rates.md
--- */
SELECT
    cluster,
    switch,
    port,
    date_trunc('minute', second_utc) AS minute_utc,
    hour_utc,
    sum(in_bytes) AS in_bytes,
    sum(out_bytes) AS out_bytes,
    sum(covered_ms) AS covered_ms,
    CASE
        WHEN bool_or(quality = 'gap') THEN 'gap'
        WHEN bool_or(quality = 'coarse') THEN 'coarse'
        ELSE 'fine'
    END AS quality
FROM metrics.port_second
GROUP BY cluster, switch, port, minute_utc, hour_utc

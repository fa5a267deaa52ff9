/* ---
about: Bytes of every port in each second that one of its windows overlaps. A window's bytes are spread evenly over its time, in whole bytes that sum exactly to the window's.
partition: [hour_utc, switch]
grain: [cluster, switch, port, second_utc]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  second_utc: TIMESTAMP start of the second
  hour_utc: TIMESTAMP the hour
  in_bytes: BIGINT [B] bytes that entered the switch in this second
  out_bytes: BIGINT [B] bytes that left the switch in this second
  covered_ms: INTEGER [ms] milliseconds of the second that windows cover
  quality: VARCHAR quality by the longest window that overlaps the second, fine (up to 2 s), coarse (up to 10 s) or gap
time: second_utc
dimensions: [cluster, switch, port, quality]
measures:
  in_bytes, out_bytes: sum, shown in GB
  covered_ms: sum except over switch, port, shown in s
sources: docs/metrics/rates.md
--- */
SELECT
    p.cluster,
    switch,
    p.port,
    make_timestamp(epoch_us(p.hour_utc) + CAST(s.second AS BIGINT) * 1000000) AS second_utc,
    p.hour_utc,
    s.in_bytes,
    s.out_bytes,
    s.covered_ms,
    CASE WHEN s.longest_ms <= 2000 THEN 'fine' WHEN s.longest_ms <= 10000 THEN 'coarse' ELSE 'gap' END AS quality
FROM staging.port_seconds AS s
JOIN staging.port_files AS p USING (file_key, switch)  -- check of port_minute and port_hour

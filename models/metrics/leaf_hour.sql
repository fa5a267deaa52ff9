/* ---
about: Bytes of every leaf and storage leaf in one hour, on its server side and on its spine side.
partition: hour_utc
grain: [cluster, switch, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR leaf or storage leaf
  hour_utc: TIMESTAMP the hour
  access_in_bytes: BIGINT [B] bytes from servers
  access_out_bytes: BIGINT [B] bytes to servers
  uplink_in_bytes: BIGINT [B] bytes from spines
  uplink_out_bytes: BIGINT [B] bytes to spines
  in_bytes: BIGINT [B] bytes that entered through any port
  out_bytes: BIGINT [B] bytes that left through any port
  in_out_difference: 'DOUBLE [1] in_bytes / out_bytes - 1: relative difference of bytes in and out'
  leaving_share: DOUBLE [1] uplink_out_bytes / access_in_bytes, the share of the servers' bytes that leaves the leaf
time: hour_utc
measures:
  access_in_bytes, access_out_bytes, uplink_in_bytes, uplink_out_bytes: sum, shown in TB
  in_bytes, out_bytes: sum, shown in TB
  in_out_difference: none, shown in %
  leaving_share: uplink_out_bytes / access_in_bytes, shown in %
checks:
  - total(in_bytes) = total(metrics.port_hour.in_bytes)
  - total(out_bytes) = total(metrics.port_hour.out_bytes)
  # storage leaves are nearly idle: a few bytes are a large difference
  - warn: starts_with(switch, 'ST-') or in_out_difference between -0.0001 and 0.0001 or in_out_difference is null
    says: "{switch} took in {in_bytes:B} and gave out {out_bytes:B}: {in_out_difference:.3%} apart"
sources: docs/metrics/balance.md
--- */
WITH sides AS (                -- spare and management ports count in in_bytes and out_bytes alone
    SELECT
        cluster,
        switch,
        hour_utc,
        sum(in_bytes) FILTER (WHERE port_class IN ('access', 'storage_access')) AS access_in_bytes,
        sum(out_bytes) FILTER (WHERE port_class IN ('access', 'storage_access')) AS access_out_bytes,
        sum(in_bytes) FILTER (WHERE port_class IN ('uplink', 'storage_uplink')) AS uplink_in_bytes,
        sum(out_bytes) FILTER (WHERE port_class IN ('uplink', 'storage_uplink')) AS uplink_out_bytes,
        sum(in_bytes) AS in_bytes,
        sum(out_bytes) AS out_bytes
    FROM metrics.port_hour
    GROUP BY ALL
)

SELECT
    cluster,
    switch,
    hour_utc,
    coalesce(access_in_bytes, 0) AS access_in_bytes,    -- 0 for a leaf of which no port of the side has counters
    coalesce(access_out_bytes, 0) AS access_out_bytes,
    coalesce(uplink_in_bytes, 0) AS uplink_in_bytes,
    coalesce(uplink_out_bytes, 0) AS uplink_out_bytes,
    in_bytes,
    out_bytes,
    in_bytes / nullif(out_bytes, 0) - 1 AS in_out_difference,
    uplink_out_bytes / nullif(access_in_bytes, 0) AS leaving_share
FROM sides

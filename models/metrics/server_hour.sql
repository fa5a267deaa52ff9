/* ---
about: Bytes received and sent by every owner of access ports in one hour, with the number of NICs used. Covers the bytes of all access ports once.
partition: hour_utc
grain: [cluster, server, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR owner of the ports, as in topology.hour_owners
  hour_utc: TIMESTAMP the hour
  nics: BIGINT [1] NICs of the server on ports with counters
  rails_used: BIGINT [1] NICs that moved a tenth or more of the bytes of the server's busiest NIC, in and out together; 0 for a server under 1e9 B
  rx_bytes: BIGINT [B] bytes that these NICs received
  tx_bytes: BIGINT [B] bytes that these NICs sent
  rx_mean_bps: DOUBLE [bit/s] rx_bytes x 8 / 3600
  tx_mean_bps: DOUBLE [bit/s] tx_bytes x 8 / 3600
time: hour_utc
measures:
  rx_bytes, tx_bytes: sum, shown in TB
  rx_mean_bps, tx_mean_bps: sum except over hour_utc, shown in Gbit/s
  nics, rails_used: sum except over hour_utc
checks:
  - total(rx_bytes) = total(metrics.server_minute.rx_bytes)
  - total(tx_bytes) = total(metrics.server_minute.tx_bytes)
  - total(rx_bytes) = total(metrics.port_hour.out_bytes where port_class = 'access') by hour_utc
  - total(tx_bytes) = total(metrics.port_hour.in_bytes where port_class = 'access') by hour_utc
  - total(rx_bytes) = total(metrics.nic_second.rx_bytes)
  - total(tx_bytes) = total(metrics.nic_second.tx_bytes)
  - rails_used between 0 and nics
sources: docs/metrics/rates.md
--- */
WITH rails AS (
    SELECT
        o.cluster,
        o.server,
        h.hour_utc,
        h.in_bytes,
        h.out_bytes,
        {{ uses_rail('(h.in_bytes + h.out_bytes)', 'of_server') }} AS is_used
    FROM topology.hour_owners AS o
    JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)  -- check
    WINDOW of_server AS (PARTITION BY o.cluster, o.server, h.hour_utc)
)

SELECT
    cluster,
    server,
    hour_utc,
    count(*) AS nics,
    count(*) FILTER (WHERE is_used) AS rails_used,
    sum(out_bytes) AS rx_bytes,
    sum(in_bytes) AS tx_bytes,
    sum(out_bytes) * 8 / 3600 AS rx_mean_bps,
    sum(in_bytes) * 8 / 3600 AS tx_mean_bps
FROM rails
GROUP BY ALL

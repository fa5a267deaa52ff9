/* ---
about: What every GPU server received and sent in one hour, and over how many of its NICs.
partition: hour_utc
grain: [cluster, server, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  hour_utc: TIMESTAMP the hour
  nics: BIGINT [1] its NICs that are mapped to a port with counters
  rails_used: BIGINT [1] those of them that moved 1e9 bytes or more, both ways together
  rx_bytes: BIGINT [B] bytes that they received
  tx_bytes: BIGINT [B] bytes that they sent
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
  - rails_used between 0 and nics
sources: docs/metrics/rates.md
--- */
SELECT
    n.cluster,
    n.server,
    h.hour_utc,
    count(*) AS nics,
    count(*) FILTER (WHERE h.in_bytes + h.out_bytes >= 1000000000) AS rails_used,
    sum(h.out_bytes) AS rx_bytes,
    sum(h.in_bytes) AS tx_bytes,
    sum(h.out_bytes) * 8 / 3600 AS rx_mean_bps,
    sum(h.in_bytes) * 8 / 3600 AS tx_mean_bps
FROM topology.nic_ports AS n
JOIN metrics.port_hour AS h ON h.cluster = n.cluster AND h.switch = n.switch AND h.port = n.port
GROUP BY n.cluster, n.server, h.hour_utc

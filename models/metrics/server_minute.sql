/* ---
about: What every GPU server received and sent in each minute over all its mapped NICs with counters.
partition: hour_utc
grain: [cluster, server, minute_utc]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  minute_utc: TIMESTAMP start of the minute
  hour_utc: TIMESTAMP the hour
  rx_bytes: BIGINT [B] bytes that its NICs received
  tx_bytes: BIGINT [B] bytes that its NICs sent
time: minute_utc
measures:
  rx_bytes, tx_bytes: sum, shown in GB
checks:
  - rx_bytes >= 0 and tx_bytes >= 0
sources: docs/metrics/rates.md
--- */
SELECT
    n.cluster,
    n.server,
    m.minute_utc,
    m.hour_utc,
    sum(m.out_bytes) AS rx_bytes,
    sum(m.in_bytes) AS tx_bytes
FROM topology.nic_ports AS n
JOIN metrics.port_minute AS m ON m.cluster = n.cluster AND m.switch = n.switch AND m.port = n.port
GROUP BY n.cluster, n.server, m.minute_utc, m.hour_utc

/* ---
about: Bytes of each NIC in each second, both directions together, of servers that moved at least 1 GB in the hour. Narrow, for models that look at series; metrics.nic_second has names, directions and all servers.
partition: hour_utc
grain: [cluster, server, file_key, second]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  file_key: BIGINT [1] the NIC's port in this hour, see staging.port_files
  hour_utc: TIMESTAMP the hour
  second: INTEGER [s] second of the hour
  bytes: BIGINT [B] bytes received and sent
  longest_ms: INTEGER [ms] the longest window that touches the second
time: hour_utc
measures:
  bytes: sum, shown in GB
  longest_ms: max
sources: docs/metrics/periods.md
--- */
WITH busy AS (                 -- ports of the NICs of servers with traffic
    SELECT
        n.cluster,
        n.server,
        f.file_key
    FROM topology.nic_ports AS n
    JOIN staging.port_files AS f ON f.cluster = n.cluster AND f.switch = n.switch AND f.port = n.port
    JOIN metrics.server_hour AS h ON h.cluster = n.cluster AND h.server = n.server AND h.hour_utc = f.hour_utc
    WHERE h.rx_bytes + h.tx_bytes >= 1000000000
)

SELECT
    b.cluster,
    b.server,
    b.file_key,
    s.hour_utc,
    s.second,
    s.in_bytes + s.out_bytes AS bytes,
    s.longest_ms
FROM staging.port_seconds AS s
JOIN busy AS b ON b.file_key = s.file_key

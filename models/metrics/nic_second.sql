/* ---
about: What every GPU NIC received and sent in each second, as its leaf port saw it.
partition: hour_utc
grain: [cluster, server, nic, second_utc]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  hca: VARCHAR the adapter, mlx5_n
  nic: VARCHAR its network interface
  second_utc: TIMESTAMP start of the second
  hour_utc: TIMESTAMP the hour
  rx_bytes: BIGINT [B] bytes that the NIC received, out of its port
  tx_bytes: BIGINT [B] bytes that the NIC sent, into its port
  quality: VARCHAR fine, coarse or gap, as of its port
time: second_utc
dimensions: [cluster, server, nic, hca, quality]
measures:
  rx_bytes, tx_bytes: sum, shown in GB
sources: docs/metrics/rates.md
--- */
SELECT
    n.cluster,
    n.server,
    n.hca,
    n.nic,
    s.second_utc,
    s.hour_utc,
    s.out_bytes AS rx_bytes,
    s.in_bytes AS tx_bytes,
    s.quality
FROM topology.nic_ports AS n
JOIN metrics.port_second AS s ON s.cluster = n.cluster AND s.switch = n.switch AND s.port = n.port

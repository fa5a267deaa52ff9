/* ---
about: What every GPU NIC received and sent in each second, as its leaf port saw it. The bytes of all access ports, each once.
partition: hour_utc
grain: [cluster, server, nic, second_utc]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR owner of the port, as in topology.hour_owners
  hca: VARCHAR the adapter, mlx5_n; NULL where nothing names it
  nic: VARCHAR its network interface; Leaf-n:1/0/p:h where nothing names it
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
    o.cluster,
    o.server,
    o.hca,
    o.nic,
    s.second_utc,
    s.hour_utc,
    s.out_bytes AS rx_bytes,
    s.in_bytes AS tx_bytes,
    s.quality
FROM topology.hour_owners AS o
JOIN metrics.port_second AS s USING (cluster, switch, port, hour_utc)

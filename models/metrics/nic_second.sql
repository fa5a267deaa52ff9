/* ---
about: Bytes received and sent by every GPU NIC in each second, as counted by its leaf port. Covers the bytes of all access ports once.
partition: hour_utc
grain: [cluster, server, nic, second_utc]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR owner of the port, as in topology.hour_owners
  hca: VARCHAR the adapter, mlx5_n; NULL where no source names it
  nic: VARCHAR network interface of the NIC; Leaf-n:1/0/p:h where no source names it
  second_utc: TIMESTAMP start of the second
  hour_utc: TIMESTAMP the hour
  rx_bytes: BIGINT [B] bytes that the NIC received, the out bytes of its port
  tx_bytes: BIGINT [B] bytes that the NIC sent, the in bytes of its port
  quality: VARCHAR quality of the port's second, fine, coarse or gap
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
JOIN metrics.port_second AS s USING (cluster, switch, port, hour_utc)  -- check of server_hour

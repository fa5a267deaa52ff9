/* ---
about: Server that owns the bytes of each access port in an hour. A known owner is the same in all hours; a port without one is its own owner in the hours in which it moved a byte. Ports of storage leaves have no owners. A check of metrics.server_hour compares the bytes of all access ports.
partition: hour_utc
grain: [cluster, switch, port, hour_utc]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR the leaf
  port: VARCHAR access port of the leaf, full name
  hour_utc: TIMESTAMP the hour
  file_key: BIGINT [1] as in staging.port_files
  server: VARCHAR as in topology.port_owners; unlisted:Leaf-n:1/0/p:h for a port without a known server
  nic: VARCHAR the server's NIC; Leaf-n:1/0/p:h where no source names it
  hca: VARCHAR adapter of the NIC, mlx5_n; NULL where no source names it
  evidence: VARCHAR as in topology.port_owners; inferred:port where no owner is known and the port stands for it
sources: docs/metrics/topology.md
--- */
SELECT
    f.cluster,
    f.switch,
    f.port,
    f.hour_utc,
    f.file_key,
    coalesce(o.server, 'unlisted:' || f.switch || ':' || {{ short_port('f.port') }}) AS server,
    coalesce(o.nic, f.switch || ':' || {{ short_port('f.port') }}) AS nic,
    o.hca,
    coalesce(o.evidence, 'inferred:port') AS evidence
FROM staging.port_files AS f
JOIN staging.port_totals AS t ON t.file_key = f.file_key  -- check of server_hour
-- check of server_hour, once
LEFT JOIN topology.port_owners AS o ON o.cluster = f.cluster AND o.switch = f.switch AND o.port = f.port
WHERE f.port_class = 'access' AND (o.server IS NOT NULL OR t.in_bytes > 0 OR t.out_bytes > 0)

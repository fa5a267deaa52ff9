/* ---
about: Every port of the leaves and storage leaves: what it is, how fast, and what is at its other end.
grain: [cluster, switch, port]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR leaf or storage leaf
  port: VARCHAR full name
  port_class: VARCHAR access, uplink, spare, management, storage_access or storage_uplink, by name and number
  line_rate_bps: BIGINT [bit/s] 200e9, 400e9, management 1e9
  server: VARCHAR the server at its other end, where the workbook has one
  nic: VARCHAR that server's NIC
  peer_switch: VARCHAR the switch at its other end
  peer_port: VARCHAR that switch's port
  source: VARCHAR where the other end is from
  has_counters: BOOLEAN whether a counter file of it is loaded
checks:
  - port_class in ('access', 'uplink', 'spare', 'management', 'storage_access', 'storage_uplink')
  - not null(line_rate_bps)
  - references(cluster, switch) -> topology.switches(cluster, switch)
sources: docs/metrics/topology.md
--- */
SELECT
    p.cluster,
    p.switch,
    p.port,
    p.port_class,
    p.line_rate_bps,
    t.server,
    t.nic,
    u.spine AS peer_switch,
    u.spine_port AS peer_port,
    CASE WHEN t.server IS NOT NULL THEN 'workbook' ELSE u.source END AS source,
    p.has_counters
FROM staging.switch_ports AS p
LEFT JOIN staging.cluster_topology AS t ON t.cluster = p.cluster AND t.switch = p.switch AND t.port = p.port
LEFT JOIN topology.uplinks AS u ON u.cluster = p.cluster AND u.leaf = p.switch AND u.leaf_port = p.port

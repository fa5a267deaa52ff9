/* ---
about: 'Every port of the leaves and storage leaves: class, line rate, and the device at the other end.'
grain: [cluster, switch, port]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR leaf or storage leaf
  port: VARCHAR full name
  port_class: VARCHAR access, uplink, spare, management, storage_access or storage_uplink, by name and number
  line_rate_bps: BIGINT [bit/s] 200e9, 400e9, management 1e9
  server: VARCHAR the server at the other end, as in topology.port_owners; unlisted:Leaf-n:1/0/p:h where the server is unknown
  nic: VARCHAR NIC of that server; Leaf-n:1/0/p:h where no source names it
  peer_switch: VARCHAR the switch at the other end
  peer_port: VARCHAR port of that switch
  source: 'VARCHAR source of the other end: workbook, link_table or inferred:<rule>; NULL where no other end is known'
  has_counters: BOOLEAN true if a counter file of the port is loaded
checks:
  - port_class in ('access', 'uplink', 'spare', 'management', 'storage_access', 'storage_uplink')
  - not null(line_rate_bps)
  - references(cluster, switch) -> topology.switches(cluster, switch)
  - "none: SELECT cluster, switch, port FROM staging.port_files ANTI JOIN this USING (cluster, switch, port)"
sources: docs/metrics/topology.md
--- */
WITH owners AS (               -- owners by the sheets; a port without a known server is its own owner where any hour saw a byte
    SELECT cluster, switch, port, server, nic, evidence FROM topology.port_owners
    UNION
    SELECT cluster, switch, port, server, nic, evidence FROM topology.hour_owners
)

SELECT
    p.cluster,
    p.switch,
    p.port,
    p.port_class,
    p.line_rate_bps,
    o.server,
    o.nic,
    u.spine AS peer_switch,
    u.spine_port AS peer_port,
    coalesce(o.evidence, u.source) AS source,
    p.has_counters
FROM staging.switch_ports AS p
LEFT JOIN owners AS o USING (cluster, switch, port)  -- check, once
LEFT JOIN topology.uplinks AS u ON u.cluster = p.cluster AND u.leaf = p.switch AND u.leaf_port = p.port  -- once

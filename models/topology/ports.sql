/* ---
about: 'Every port of the leaves and storage leaves: what it is, how fast, and what is at its other end.'
grain: [cluster, switch, port]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR leaf or storage leaf
  port: VARCHAR full name
  port_class: VARCHAR access, uplink, spare, management, storage_access or storage_uplink, by name and number
  line_rate_bps: BIGINT [bit/s] 200e9, 400e9, management 1e9
  server: VARCHAR the server at its other end, as in topology.port_owners; unlisted:Leaf-n:1/0/p:h where the port owns itself
  nic: VARCHAR that server's NIC; Leaf-n:1/0/p:h where nothing names it
  peer_switch: VARCHAR the switch at its other end
  peer_port: VARCHAR that switch's port
  source: 'VARCHAR where the other end is from: workbook, link_table or inferred:<rule>; NULL where nothing is there'
  has_counters: BOOLEAN whether a counter file of it is loaded
checks:
  - port_class in ('access', 'uplink', 'spare', 'management', 'storage_access', 'storage_uplink')
  - not null(line_rate_bps)
  - references(cluster, switch) -> topology.switches(cluster, switch)
  - "none: SELECT cluster, switch, port FROM staging.port_files ANTI JOIN this USING (cluster, switch, port)"
sources: docs/metrics/topology.md
--- */
WITH owners AS (               -- by the sheets; a port that nothing places owns itself where any hour saw a byte
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
LEFT JOIN owners AS o USING (cluster, switch, port)
LEFT JOIN topology.uplinks AS u ON u.cluster = p.cluster AND u.leaf = p.switch AND u.leaf_port = p.port

/* ---
about: Every GPU server of the workbook, and every inferred owner of other access ports.
grain: [cluster, server]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n; GPU-121/122 is one of these two; unlisted:Leaf-n:1/0/p:h is a port without a known server
  evidence: VARCHAR workbook; inferred:slot or inferred:port for an owner of ports that no sheet assigns
  sysname: VARCHAR the server's own system name; NULL where only the NIC sheet lists the server
  host_ip: VARCHAR address of the server; NULL where only the topology sheet lists the server
  in_topology_sheet: BOOLEAN true if the sheet `cluster topology` lists the server
  in_nic_sheet: BOOLEAN true if the NIC sheet lists the server
  nic_family: VARCHAR ens10 (ens10, 11, 18, 19) or ens24 (ens24, 25, 30, 31)
  leaf_group: VARCHAR the leaves that the server is plugged into by the sheet; for an inferred owner the leaves of its ports
checks:
  - (evidence = 'workbook') = (in_topology_sheet or in_nic_sheet)
  - none: SELECT cluster, server FROM topology.hour_owners ANTI JOIN this USING (cluster, server)
  - none: SELECT cluster, server FROM topology.port_owners ANTI JOIN this USING (cluster, server)
sources: docs/metrics/topology.md
--- */
WITH owners AS (               -- owners inferred from the sheets, and owners in any loaded hour
    SELECT cluster, server, switch, evidence FROM topology.port_owners
    UNION ALL
    SELECT cluster, server, switch, evidence FROM topology.hour_owners
)

SELECT
    cluster,
    server,
    'workbook' AS evidence,
    sysname,
    host_ip,
    in_topology_sheet,
    in_nic_sheet,
    nic_family,
    leaf_group
FROM topology.sheet_servers
UNION ALL
SELECT
    o.cluster,
    o.server,
    min(o.evidence) AS evidence,
    CAST(NULL AS VARCHAR) AS sysname,
    CAST(NULL AS VARCHAR) AS host_ip,
    false AS in_topology_sheet,
    false AS in_nic_sheet,
    CAST(NULL AS VARCHAR) AS nic_family,
    min({{ leaf_group('o.switch') }}) AS leaf_group
FROM owners AS o
ANTI JOIN topology.sheet_servers AS s USING (cluster, server)  -- check, grain
GROUP BY o.cluster, o.server

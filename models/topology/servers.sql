/* ---
about: Every GPU server that the workbook names, and every owner of access ports that it does not.
grain: [cluster, server]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n; GPU-121/122 is one of these two; unlisted:Leaf-n:1/0/p:h a port that owns itself
  evidence: VARCHAR workbook; inferred:slot or inferred:port for an owner of ports that no sheet has there
  sysname: VARCHAR the server's name for itself; NULL where only the NIC sheet has it
  host_ip: VARCHAR address of the server; NULL where only the topology sheet has it
  in_topology_sheet: BOOLEAN true if the sheet `cluster topology` has it
  in_nic_sheet: BOOLEAN true if the sheet of NICs has it
  nic_family: VARCHAR ens10 (ens10, 11, 18, 19) or ens24 (ens24, 25, 30, 31)
  leaf_group: VARCHAR the leaves it is plugged into, as the sheet places it; those of its ports where it is inferred
checks:
  - (evidence = 'workbook') = (in_topology_sheet or in_nic_sheet)
  - none: SELECT cluster, server FROM topology.hour_owners ANTI JOIN this USING (cluster, server)
  - none: SELECT cluster, server FROM topology.port_owners ANTI JOIN this USING (cluster, server)
sources: docs/metrics/topology.md
--- */
WITH owners AS (               -- those that the sheets alone infer, and those of any loaded hour
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
ANTI JOIN topology.sheet_servers AS s ON s.cluster = o.cluster AND s.server = o.server
GROUP BY o.cluster, o.server

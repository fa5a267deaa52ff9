/* ---
about: Name of the server or switch at each address of the workbook, for hour tables that state addresses instead of names.
grain: [cluster, address]
columns:
  cluster: VARCHAR the cluster's folder
  address: VARCHAR address of a NIC, a server or a switch
  server: VARCHAR GPU-n; NULL for a switch
  switch: VARCHAR the switch itself, or the leaf of the NIC; NULL for a server's own address
sources: docs/formats/hour_tables.md
--- */
WITH listed AS (
    SELECT cluster, nic_ip AS address, server, switch FROM staging.cluster_topology
    UNION
    SELECT cluster, switch_ip AS address, CAST(NULL AS VARCHAR) AS server, switch FROM staging.cluster_topology
    UNION
    SELECT cluster, host_ip AS address, server, CAST(NULL AS VARCHAR) AS switch FROM staging.gpu_nics
)

SELECT cluster, address, min(server) AS server, min(switch) AS switch
FROM listed
WHERE address IS NOT NULL
GROUP BY cluster, address
HAVING count(*) = 1            -- an address in two places names nobody

/* ---
about: 'Dimension of GPU NICs, by the name of the network interface; hca is a second key where known.'
grain: [cluster, server, nic]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR the server
  nic: VARCHAR network interface of the NIC; Leaf-n:1/0/p:h where no source names it, the adapter where only the adapter is known
  nic_key: VARCHAR cluster/server/nic, one column for tools that join on one
  hca: VARCHAR the adapter, mlx5_n; NULL where no source names it
  label: VARCHAR server and adapter, as GPU-31 mlx5_2; else server and network interface
  sort_key: VARCHAR sorts labels in natural order
  switch: VARCHAR the leaf that the NIC is plugged into, as in topology.nic_ports; NULL where unresolved
  port: VARCHAR the leaf's port
  rail: INTEGER [1] place of that leaf in its leaf group, 1 to 4; NULL where unresolved
checks:
  - unique(nic_key)
  - "none: SELECT cluster, server, hca FROM this WHERE hca IS NOT NULL GROUP BY ALL HAVING count(*) > 1"
  - references(cluster, server) -> reference.dim_server(cluster, server)
  - references(cluster, switch, port) -> reference.dim_port(cluster, switch, port)
  - referenced(cluster, server, nic) by metrics.suspect_links(cluster, server, nic)
  - referenced(cluster, server, nic) by topology.task_ports(cluster, server, nic)
sources: docs/star.md
--- */
WITH adapters AS (             -- the NIC sheet names adapter and interface; hour tables name only adapters
    SELECT cluster, server, nic, hca, switch, port FROM topology.nic_ports
    UNION ALL BY NAME
    SELECT DISTINCT h.cluster, h.server, h.hca AS nic, h.hca, NULL AS switch, NULL AS port
    FROM staging.hour_nic AS h
    ANTI JOIN topology.nic_ports AS n USING (cluster, server, hca)  -- check, grain, filter
),

interfaces AS (                -- interface names from port owners and from rows of the topology sheet
    SELECT cluster, server, nic, switch, port FROM topology.port_owners
    UNION
    SELECT cluster, server, nic, switch, port FROM topology.hour_owners
    UNION
    SELECT cluster, server, nic, switch, port FROM staging.cluster_topology WHERE starts_with(switch, 'Leaf-')
),

others AS (                    -- an interface that two ports claim is assigned to neither
    SELECT
        i.cluster,
        i.server,
        i.nic,
        CASE WHEN count(*) = 1 THEN min(i.switch) END AS switch,
        CASE WHEN count(*) = 1 THEN min(i.port) END AS port
    FROM interfaces AS i
    ANTI JOIN adapters AS a USING (cluster, server, nic)  -- check, grain, filter
    GROUP BY i.cluster, i.server, i.nic
),

nics AS (
    SELECT cluster, server, nic, hca, switch, port FROM adapters
    UNION ALL BY NAME
    SELECT cluster, server, nic, NULL AS hca, switch, port FROM others
)

SELECT
    cluster,
    server,
    nic,
    cluster || '/' || server || '/' || nic AS nic_key,
    hca,
    server || ' ' || coalesce(hca, nic) AS label,
    {{ natural("concat_ws(' ', server, hca, nic)") }} AS sort_key,
    switch,
    port,
    CASE WHEN starts_with(switch, 'Leaf-') THEN CAST({{ rail('switch') }} AS INTEGER) END AS rail
FROM nics
WHERE cluster IS NOT NULL AND server IS NOT NULL AND nic IS NOT NULL

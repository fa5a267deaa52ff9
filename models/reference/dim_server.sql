/* ---
about: 'Dimension of servers: servers of the workbook, inferred owners of other ports, and servers that only a log or an hour table names.'
grain: [cluster, server]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n, or the name that topology.servers infers
  server_key: VARCHAR cluster/server, one column for tools that join on one
  label: VARCHAR the server
  sort_key: VARCHAR sorts labels in natural order
  evidence: VARCHAR workbook, inferred:slot or inferred:port; log or listed for a server that topology.servers lacks
  nic_family: VARCHAR ens10 or ens24; NULL where no sheet names its NICs
  leaf_group: VARCHAR the leaves that the server is plugged into; NULL where unknown
checks:
  - unique(server_key)
  - references(cluster) -> reference.dim_cluster(cluster)
  - referenced(cluster, server) by metrics.rail_seconds(cluster, server)
  - referenced(cluster, server) by metrics.nic_hour(cluster, server)
  - referenced(cluster, server) by metrics.server_hour(cluster, server)
  - referenced(cluster, server) by metrics.server_minute(cluster, server)
  - referenced(cluster, server) by metrics.suspect_links(cluster, server)
  - referenced(cluster, server) by metrics.suspect_servers(cluster, server)
  - referenced(cluster, server) by metrics.task_periods(cluster, server)
  - referenced(cluster, server) by metrics.task_traffic(cluster, server)
  - referenced(cluster, server) by metrics.traffic_groups(cluster, server)
  - referenced(cluster, server) by metrics.traffic_periods(cluster, server)
  - referenced(cluster, server) by topology.rank_paths(cluster, dst_server)
  - referenced(cluster, server) by topology.rank_paths(cluster, src_server)
  - referenced(cluster, server) by topology.task_ports(cluster, server)
sources: docs/star.md
--- */
WITH listed AS (
    SELECT cluster, server, evidence, nic_family, leaf_group, 1 AS choice FROM topology.servers
    UNION ALL BY NAME
    SELECT DISTINCT cluster, server, 'log' AS evidence, NULL AS nic_family, NULL AS leaf_group, 2 AS choice FROM topology.task_pods
    UNION ALL BY NAME
    SELECT DISTINCT cluster, server, 'listed' AS evidence, NULL AS nic_family, NULL AS leaf_group, 3 AS choice FROM metrics.nic_hour
)

SELECT
    cluster,
    server,
    cluster || '/' || server AS server_key,
    server AS label,
    {{ natural('server') }} AS sort_key,
    min(struct_pack(choice := choice, evidence := evidence)).evidence AS evidence,
    min(nic_family) AS nic_family,
    min(leaf_group) AS leaf_group
FROM listed
WHERE cluster IS NOT NULL AND server IS NOT NULL
GROUP BY cluster, server

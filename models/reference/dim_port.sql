/* ---
about: 'Dimension of switch ports. Port names repeat on every switch: the key is cluster, switch and port together.'
grain: [cluster, switch, port]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  port_key: VARCHAR cluster/switch/port, one column for tools that join on one
  label: VARCHAR switch and short port, as Leaf-5 1/0/7:1
  sort_key: VARCHAR sorts labels in natural order, by switch and port
  port_class: VARCHAR access, uplink, spare, management, storage_access or storage_uplink; NULL for ports of spines
  line_rate_bps: BIGINT [bit/s] 200e9, 400e9, management 1e9
  server: VARCHAR the server at the other end, as in topology.ports
  nic: VARCHAR NIC of that server
  peer_switch: VARCHAR the switch at the other end
  peer_port: VARCHAR port of that switch
  rail: INTEGER [1] place of the leaf in its leaf group, 1 to 4; NULL for ports of storage leaves and spines
  has_counters: BOOLEAN true if a counter file of the port is loaded
checks:
  - unique(port_key)
  - references(cluster, switch) -> reference.dim_switch(cluster, switch)
  - referenced(cluster, switch, port) by metrics.port_hour(cluster, switch, port)
  - referenced(cluster, switch, port) by metrics.port_loss_hour(cluster, switch, port)
  - referenced(cluster, switch, port) by metrics.port_minute(cluster, switch, port)
  - referenced(cluster, switch, port) by metrics.rail_seconds(cluster, switch, port)
  - referenced(cluster, switch, port) by metrics.suspect_links(cluster, switch, port)
  - referenced(cluster, switch, port) by metrics.task_traffic(cluster, switch, port)
  - referenced(cluster, switch, port) by topology.rank_paths(cluster, dst_switch, dst_port)
  - referenced(cluster, switch, port) by topology.rank_paths(cluster, src_switch, src_port)
  - referenced(cluster, switch, port) by topology.task_ports(cluster, switch, port)
sources: docs/star.md
--- */
WITH named AS (                -- includes ports that only a rule, a link table or an hour table names
    SELECT cluster, switch, port FROM topology.ports
    UNION
    SELECT cluster, switch, port FROM topology.port_owners
    UNION
    SELECT cluster, leaf AS switch, leaf_port AS port FROM topology.uplinks
    UNION
    SELECT cluster, spine AS switch, spine_port AS port FROM topology.uplinks
    UNION
    SELECT cluster, switch, port FROM staging.hour_port
    UNION
    SELECT cluster, switch, port FROM staging.hour_link
),

labeled AS (
    SELECT
        cluster,
        switch,
        port,
        switch || ' ' || coalesce(nullif({{ short_port('port') }}, ''), port) AS label
    FROM named
    WHERE cluster IS NOT NULL AND switch IS NOT NULL AND port IS NOT NULL
)

SELECT
    n.cluster,
    n.switch,
    n.port,
    n.cluster || '/' || n.switch || '/' || n.port AS port_key,
    n.label,
    {{ natural('n.label') }} AS sort_key,
    CASE WHEN NOT starts_with(n.switch, 'spine-') THEN coalesce(p.port_class, {{ port_class('n.switch', 'n.port') }}) END AS port_class,
    coalesce(p.line_rate_bps, {{ line_rate_bps('n.port') }}) AS line_rate_bps,
    p.server,
    p.nic,
    p.peer_switch,
    p.peer_port,
    CASE WHEN starts_with(n.switch, 'Leaf-') THEN CAST({{ rail('n.switch') }} AS INTEGER) END AS rail,
    coalesce(p.has_counters, false) AS has_counters
FROM labeled AS n
LEFT JOIN topology.ports AS p USING (cluster, switch, port)  -- check, once

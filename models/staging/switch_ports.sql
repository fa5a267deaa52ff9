/* ---
about: Every leaf and storage-leaf port that the workbook or a counter file names, with class and line rate derived from its name and number.
grain: [cluster, switch, port]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  device_name: VARCHAR the switch's own device name
  role: VARCHAR leaf or storage_leaf
  leaf_number: INTEGER [1] n of Leaf-n or ST-leaf-n
  port_number: INTEGER [1] p of 1/0/p
  port_class: VARCHAR access, uplink, spare, management, storage_access or storage_uplink
  line_rate_bps: BIGINT [bit/s] 200e9, 400e9, management 1e9
  has_counters: BOOLEAN true if a counter file of the port is loaded
sources: docs/formats/port_counters.md
--- */
WITH named AS (
    SELECT cluster, switch, port, device_name, false AS has_counters
    FROM staging.cluster_topology
    UNION ALL
    SELECT cluster, switch, port, device_name, true AS has_counters
    FROM staging.port_files
)

SELECT
    cluster,
    switch,
    port,
    min(device_name) AS device_name,
    CASE WHEN starts_with(switch, 'ST-') THEN 'storage_leaf' ELSE 'leaf' END AS role,
    {{ number_of('switch') }} AS leaf_number,
    {{ port_number('port') }} AS port_number,
    {{ port_class('switch', 'port') }} AS port_class,
    {{ line_rate_bps('port') }} AS line_rate_bps,
    bool_or(has_counters) AS has_counters
FROM named
WHERE NOT starts_with(switch, 'spine-')
GROUP BY cluster, switch, port

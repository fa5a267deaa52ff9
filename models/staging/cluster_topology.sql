/* ---
about: 'The workbook''s sheet `cluster topology`: which server NIC is plugged into which leaf port.'
grain: [cluster, sheet_row]
columns:
  cluster: VARCHAR the cluster's folder
  sheet_row: INTEGER [1] row of the sheet, the header being 1
  switch: VARCHAR short name of the leaf
  port: VARCHAR full name of the leaf's port
  server: VARCHAR GPU-n, the end of the server's sysname
  server_number: INTEGER [1] n of GPU-n
  nic: VARCHAR the NIC's name in the server; NULL in two rows
  nic_ip: VARCHAR address of this NIC, not of the server; NULL in eight rows
  switch_ip: VARCHAR management address of the leaf; NULL in the same rows
  device_name: VARCHAR the leaf's own device name
  sysname: VARCHAR the server's own system name
checks:
  - unique(cluster, switch, port)
sources: docs/formats/workbook.md
--- */
SELECT
    f.cluster,
    t.sheet_row,
    {{ switch_name('t.switchname') }} AS switch,
    t.accessport AS port,
    {{ server_name('t.sysname') }} AS server,
    {{ number_of('t.sysname') }} AS server_number,
    t.nicname AS nic,
    t.serverip AS nic_ip,
    t.switchip AS switch_ip,
    t.switchname AS device_name,
    t.sysname
FROM raw.cluster_topology AS t
JOIN raw.files AS f ON f.release_path = t.filename
WHERE f.status IN ('read', 'partial')

/* ---
about: 'The link table of an hour: both ends of each link, with byte counters and ECN marks.'
partition: hour_utc
grain: [cluster, hour_utc, file, line]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  file: VARCHAR the file's path in its release
  line: INTEGER [1] line of the file
  time_utc: TIMESTAMP start of the time range that the row covers
  device_name: VARCHAR the switch's own device name
  switch: VARCHAR short name of the switch; its address where the table has that and the workbook does not
  port: VARCHAR port of the switch, full name
  peer_device: VARCHAR device at the other end, as written
  peer_switch: VARCHAR the switch at the other end; NULL where a server is there
  peer_port: VARCHAR port at the other end, full name; NULL where a server's NIC is there
  oper_status: VARCHAR up or down
  in_octets: BIGINT [B] bytes that entered
  out_octets: BIGINT [B] bytes that left
  ecn_marked: BIGINT [1] packets marked for congestion
sources: docs/formats/hour_tables.md
--- */
SELECT
    f.cluster,
    f.hour_utc,
    r.filename AS file,
    r.line,
    r.time_utc,
    trim(r.DeviceName) AS device_name,
    coalesce({{ named_switch('r.DeviceName') }}, a.switch, trim(r.DeviceName)) AS switch,
    {{ port_name('r.IfAbbreviatedName') }} AS port,
    trim(r.DstDevice) AS peer_device,
    coalesce({{ named_switch('r.DstDevice') }}, CASE WHEN p.server IS NULL THEN p.switch END) AS peer_switch,
    {{ port_name('r.DstPort') }} AS peer_port,
    lower(trim(r.IfOperStatus)) AS oper_status,
    try_cast(r.InOctets AS BIGINT) AS in_octets,
    try_cast(r.OutOctets AS BIGINT) AS out_octets,
    try_cast(r.EcnMarkedCount AS BIGINT) AS ecn_marked
FROM raw.link AS r
JOIN raw.files AS f ON f.release_path = r.filename
LEFT JOIN staging.addresses AS a ON a.cluster = f.cluster AND a.address = trim(r.DeviceName)
LEFT JOIN staging.addresses AS p ON p.cluster = f.cluster AND p.address = trim(r.DstDevice)
WHERE f.status IN ('read', 'partial')

/* ---
about: 'The switch-port table of an hour: bytes and lost packets per minute.'
partition: hour_utc
grain: [cluster, hour_utc, file, line]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  file: VARCHAR the file's path in its release
  line: INTEGER [1] line of the file
  time_utc: TIMESTAMP end of the minute
  switch: VARCHAR short name of the switch; where neither the table nor the workbook names it, the device as written
  port: VARCHAR full name of the port
  in_bytes: BIGINT [B] bytes that entered in the past minute
  out_bytes: BIGINT [B] bytes that left in the past minute
  in_loss_packets: BIGINT [1] inbound packets lost in the past minute
  out_loss_packets: BIGINT [1] outbound packets lost in the past minute
sources: docs/formats/hour_tables.md
--- */
SELECT
    f.cluster,
    f.hour_utc,
    r.filename AS file,
    r.line,
    r.time_utc,
    coalesce({{ named_switch('r.DeviceName') }}, a.switch, trim(r.DeviceName)) AS switch,
    {{ port_name('r.PortName') }} AS port,
    try_cast(r.InBytes AS BIGINT) AS in_bytes,
    try_cast(r.OutBytes AS BIGINT) AS out_bytes,
    try_cast(r.InPktsLoss AS BIGINT) AS in_loss_packets,
    try_cast(r.OutPktsLoss AS BIGINT) AS out_loss_packets
FROM raw.port AS r
JOIN raw.files AS f ON f.release_path = r.filename
LEFT JOIN staging.addresses AS a ON a.cluster = f.cluster AND a.address = trim(r.DeviceName)
WHERE f.status IN ('read', 'partial')

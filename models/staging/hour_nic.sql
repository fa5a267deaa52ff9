/* ---
about: 'The NIC counter table of an hour: bytes that each adapter received and sent since it started, about once a minute.'
partition: hour_utc
grain: [cluster, hour_utc, file, line]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  file: VARCHAR the file's path in its release
  line: INTEGER [1] line of the file
  time_utc: TIMESTAMP when the counters were read
  server: VARCHAR GPU-n; where neither the table nor the workbook names it, the device or address as written
  hca: VARCHAR the adapter, mlx5_n
  host_ip: VARCHAR address of the server
  received_bytes: BIGINT [B] bytes received since the adapter started, a running counter
  transmitted_bytes: BIGINT [B] bytes sent since the adapter started, a running counter
sources: docs/formats/hour_tables.md
--- */
SELECT
    f.cluster,
    f.hour_utc,
    r.filename AS file,
    r.line,
    r.time_utc,
    coalesce({{ named_server('r.DeviceName') }}, a.server, trim(r.DeviceName), trim(r.Ip)) AS server,
    {{ adapter_name('r.PortName') }} AS hca,
    trim(r.Ip) AS host_ip,
    try_cast(r.ReceivedBytes AS BIGINT) AS received_bytes,
    try_cast(r.TransmittedBytes AS BIGINT) AS transmitted_bytes
FROM raw.nic AS r
JOIN raw.files AS f ON f.release_path = r.filename
LEFT JOIN staging.addresses AS a
    ON
        a.cluster = f.cluster
        AND a.address = {{ address_for(named_server('r.DeviceName'), 'r.DeviceName', 'r.Ip') }}
WHERE f.status IN ('read', 'partial')

/* ---
about: Port counter files, one per port and hour, each with an integer key.
partition: hour_utc
grain: [file_key]
columns:
  file_key: BIGINT [1] hours since 1970 x 100000 + the file's place in its hour, ordered by cluster, switch and port
  hour_utc: TIMESTAMP the hour that the file holds
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  device_name: VARCHAR the switch's own device name
  is_management: BOOLEAN true for the management port, whose counters have 32 bits
  port_class: VARCHAR access, uplink, spare, management, storage_access or storage_uplink, by name and number
  line_rate_bps: BIGINT [bit/s] 200e9, 400e9, management 1e9
  file: VARCHAR the file's path in its release
checks:
  - unique(hour_utc, cluster, switch, port)
  - not null(line_rate_bps)
sources: docs/formats/port_counters.md
--- */
SELECT
    epoch_us(hour_utc) // 3600000000 * 100000
    + row_number() OVER (PARTITION BY hour_utc ORDER BY cluster, switch, port) AS file_key,
    hour_utc,
    cluster,
    switch,
    port,
    device AS device_name,
    starts_with(port, 'M-GigabitEthernet') AS is_management,
    {{ port_class('switch', 'port') }} AS port_class,
    {{ line_rate_bps('port') }} AS line_rate_bps,
    release_path AS file
FROM raw.files
WHERE format = 'zhejiang.port_counters' AND status IN ('read', 'partial')

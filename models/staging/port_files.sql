/* ---
about: Port counter files, one per port and hour, each with an integer key.
partition: [hour_utc, switch]
grain: [file_key]
columns:
  file_key: BIGINT [1] 47 bits of a hash of hour, cluster and switch, then the file's place among those of its switch
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
    -- the key of a file does not depend on the files of other switches
    CAST(md5_number_lower(concat_ws('/', hour_utc, cluster, switch)) >> 17 << 16 AS BIGINT)
    + row_number() OVER (PARTITION BY hour_utc, cluster, switch ORDER BY port) AS file_key,
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

/* ---
about: The port counter files that are read, one a port and hour, and the integer that stands for the port in that hour.
partition: hour_utc
grain: [hour_utc, port_key]
columns:
  hour_utc: TIMESTAMP the hour that the file holds
  port_key: INTEGER [1] number of the port in its hour, in order of cluster, switch and port
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  port: VARCHAR full name of the port
  device_name: VARCHAR the switch's name for itself
  is_management: BOOLEAN whether it is the management port, whose counters have 32 bits
  file: VARCHAR the file's path in its release
checks:
  - unique(hour_utc, cluster, switch, port)
sources: docs/formats/port_counters.md
--- */
SELECT
    hour_utc,
    row_number() OVER (PARTITION BY hour_utc ORDER BY cluster, switch, port) AS port_key,
    cluster,
    switch,
    port,
    device AS device_name,
    starts_with(port, 'M-GigabitEthernet') AS is_management,
    release_path AS file
FROM raw.files
WHERE format = 'zhejiang.port_counters' AND status IN ('read', 'partial')

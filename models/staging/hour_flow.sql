/* ---
about: 'The flow table of an hour: samples of queue pairs between servers, with round-trip times and packets.'
partition: hour_utc
grain: [cluster, hour_utc, file, line]
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  file: VARCHAR the file's path in its release
  line: INTEGER [1] line of the file, or row of the sheet
  time_utc: TIMESTAMP when the sample was taken
  source_server: VARCHAR sending server, GPU-n
  source_switch: VARCHAR its leaf
  source_ip: VARCHAR address of its NIC
  source_qp: VARCHAR its queue pair
  dest_server: VARCHAR receiving server, GPU-n
  dest_switch: VARCHAR its leaf
  dest_ip: VARCHAR address of its NIC
  dest_qp: VARCHAR its queue pair
  rtt_ns: BIGINT [ns] round-trip time
  read_packets: BIGINT [1] packets of reads
  write_packets: BIGINT [1] packets of writes
  send_packets: BIGINT [1] packets of sends
  packets: BIGINT [1] sum of read, write and send packets; a blank counts as 0
  nak_packets: BIGINT [1] negative acknowledgments
sources: docs/formats/hour_tables.md
--- */
SELECT
    f.cluster,
    f.hour_utc,
    r.filename AS file,
    r.line,
    r.time_utc,
    {{ server_name('r.SourceServer') }} AS source_server,
    {{ switch_name('r.SourceSwitch') }} AS source_switch,
    r.SourceIp AS source_ip,
    r.SourceQp AS source_qp,
    {{ server_name('r.DestServer') }} AS dest_server,
    {{ switch_name('r.DestSwitch') }} AS dest_switch,
    r.DestIp AS dest_ip,
    r.DestQp AS dest_qp,
    r.rtt_ns,
    r.read_packets,
    r.write_packets,
    r.send_packets,
    coalesce(r.read_packets, 0) + coalesce(r.write_packets, 0) + coalesce(r.send_packets, 0) AS packets,
    r.nak_packets
FROM raw.flow AS r
JOIN raw.files AS f ON f.release_path = r.filename
WHERE f.status IN ('read', 'partial')

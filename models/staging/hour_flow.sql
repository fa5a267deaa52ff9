/* ---
about: 'The flow table of an hour: samples of queue pairs between servers, with round-trip times and packets.'
partition: hour_utc
grain: [cluster, hour_utc, file, line]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  file: VARCHAR the file's path in its release
  line: INTEGER [1] line of the file
  time_utc: TIMESTAMP when the sample was taken
  source_server: VARCHAR sending server, GPU-n; NULL where neither a name nor an address of the workbook says it
  source_switch: VARCHAR its leaf; NULL where neither a name nor an address of the workbook says it
  source_ip: VARCHAR address of its NIC
  source_qp: VARCHAR its queue pair
  dest_server: VARCHAR receiving server, GPU-n; NULL where neither a name nor an address of the workbook says it
  dest_switch: VARCHAR its leaf; NULL where neither a name nor an address of the workbook says it
  dest_ip: VARCHAR address of its NIC
  dest_qp: VARCHAR its queue pair
  rtt_ns: BIGINT [ns] round-trip time
  read_packets: BIGINT [1] packets of reads
  write_packets: BIGINT [1] packets of writes
  send_packets: BIGINT [1] packets of sends
  packets: BIGINT [1] sum of read, write and send packets; a blank or missing one counts as 0
  nak_packets: BIGINT [1] negative acknowledgments
sources: docs/formats/hour_tables.md
--- */
WITH named AS (
    SELECT
        f.cluster,
        f.hour_utc,
        r.*,
        try_cast(r.Rtt AS BIGINT) AS rtt_ns,
        try_cast(r.ReadPkts AS BIGINT) AS read_packets,
        try_cast(r.WritePkts AS BIGINT) AS write_packets,
        try_cast(r.SendPkts AS BIGINT) AS send_packets,
        try_cast(r.NakPkts AS BIGINT) AS nak_packets,
        {{ named_server('r.SourceServer') }} AS source_server,
        {{ named_server('r.DestServer') }} AS dest_server,
        {{ named_switch('r.SourceSwitch') }} AS source_switch,
        {{ named_switch('r.DestSwitch') }} AS dest_switch
    FROM raw.flow AS r
    JOIN raw.files AS f ON f.release_path = r.filename
    WHERE f.status IN ('read', 'partial')
)

SELECT
    n.cluster,
    n.hour_utc,
    n.filename AS file,
    n.line,
    n.time_utc,
    coalesce(n.source_server, s.server) AS source_server,
    coalesce(n.source_switch, ss.switch) AS source_switch,
    {{ nic_address('n.source_server', 'n.SourceServer', 'n.SourceIp') }} AS source_ip,
    trim(n.SourceQp) AS source_qp,
    coalesce(n.dest_server, d.server) AS dest_server,
    coalesce(n.dest_switch, ds.switch) AS dest_switch,
    {{ nic_address('n.dest_server', 'n.DestServer', 'n.DestIp') }} AS dest_ip,
    trim(n.DestQp) AS dest_qp,
    n.rtt_ns,
    n.read_packets,
    n.write_packets,
    n.send_packets,
    coalesce(n.read_packets, 0) + coalesce(n.write_packets, 0) + coalesce(n.send_packets, 0) AS packets,
    n.nak_packets
FROM named AS n
LEFT JOIN staging.addresses AS s
    ON s.cluster = n.cluster AND s.address = {{ address_for('n.source_server', 'n.SourceServer', 'n.SourceIp') }}
LEFT JOIN staging.addresses AS d
    ON d.cluster = n.cluster AND d.address = {{ address_for('n.dest_server', 'n.DestServer', 'n.DestIp') }}
LEFT JOIN staging.addresses AS ss
    ON ss.cluster = n.cluster AND ss.address = {{ address_for('n.source_switch', 'n.SourceSwitch', 'n.SourceIp') }}
LEFT JOIN staging.addresses AS ds
    ON ds.cluster = n.cluster AND ds.address = {{ address_for('n.dest_switch', 'n.DestSwitch', 'n.DestIp') }}

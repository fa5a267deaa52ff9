/* ---
about: Who talks to whom by minute, from the hour's flow table; bytes are estimated from packets and scaled by the counters.
partition: hour_utc
grain: [cluster, src_server, dst_server, minute_utc, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  src_server: VARCHAR sending server, GPU-n; the address of its NIC where no server is known
  dst_server: VARCHAR receiving server, GPU-n; the address of its NIC where no server is known
  minute_utc: TIMESTAMP start of the minute
  hour_utc: TIMESTAMP the hour of the flow table
  queue_pairs: BIGINT [1] distinct flows (source and destination queue pair) with a sample in the minute
  packets: BIGINT [1] packets of reads, writes and sends
  read_packets: BIGINT [1] packets of reads; NULL where the table has none
  write_packets: BIGINT [1] packets of writes; NULL where the table has none
  send_packets: BIGINT [1] packets of sends; NULL where the table has none
  nak_packets: BIGINT [1] negative acknowledgments; NULL where the table has none
  nak_ratio: DOUBLE [1] negative acknowledgments over packets
  bytes_estimate: BIGINT [B] payload of the packets times bytes_factor, or unscaled where that is NULL; NULL where a server has no name or the table no packets
  bytes_factor: DOUBLE [1] bytes that the sender's ports counted in the minute over the payload of all its sampled packets; NULL where an end has no counters, or bytes_estimate is NULL
  rtt_p50_ns: DOUBLE [ns] median round-trip time of the samples
  rtt_p99_ns: DOUBLE [ns] 99th percentile of the round-trip time
time: minute_utc
dimensions: [cluster, src_server, dst_server]
measures:
  packets, read_packets, write_packets, send_packets, nak_packets: sum
  bytes_estimate: sum, shown in GB
  queue_pairs: sum except over minute_utc
  nak_ratio: nak_packets / packets
  rtt_p50_ns, rtt_p99_ns: none, shown in us
  others: none
checks:
  - total(packets) = total(staging.hour_flow.packets)
  - total(nak_packets) = total(staging.hour_flow.nak_packets)
  - bytes_factor >= 0 or bytes_factor is null
sources: docs/metrics/flows.md
--- */
WITH pairs AS (                -- a list of flows takes a third of the memory of count(DISTINCT ..), which keeps the names of both ends with each flow
    SELECT
        cluster,
        coalesce(source_server, source_ip) AS src_server,
        coalesce(dest_server, dest_ip) AS dst_server,
        date_trunc('minute', time_utc) AS minute_utc,
        hour_utc,
        source_server IS NOT NULL AND dest_server IS NOT NULL AS is_named,
        list_unique(list({{ flow_key('f') }})) AS queue_pairs,  -- lint: allow order because distinct ones are counted
        sum(packets) AS packets,
        sum(read_packets) AS read_packets,
        sum(write_packets) AS write_packets,
        sum(send_packets) AS send_packets,
        sum(nak_packets) AS nak_packets,
        quantile_cont(rtt_ns, [0.5, 0.99]) AS rtt_ns
    FROM staging.hour_flow AS f
    GROUP BY ALL
),

payloads AS (                  -- reads and writes fill the path MTU of 4,096 B; sends are control messages of NCCL, counted as 64 B
    SELECT
        *,
        4096 * (coalesce(read_packets, 0) + coalesce(write_packets, 0)) + 64 * coalesce(send_packets, 0) AS payload,
        coalesce(read_packets, write_packets, send_packets) IS NOT NULL AND is_named AS is_estimated
    FROM pairs
),

senders AS (                   -- payload of all pairs of a sender in a minute, also of those to servers without counters
    SELECT cluster, src_server, minute_utc, CAST(sum(payload) AS BIGINT) AS payload
    FROM payloads
    WHERE is_estimated
    GROUP BY ALL
),

scaled AS (
    SELECT
        p.*,
        -- a pair is scaled only where both ends have counters: its bytes then count at the ports of both
        CASE WHEN p.is_estimated AND r.rx_bytes IS NOT NULL THEN t.tx_bytes END AS tx_bytes,
        nullif(s.payload, 0) AS sender_payload
    FROM payloads AS p
    LEFT JOIN senders AS s USING (cluster, src_server, minute_utc)  -- check, once
    LEFT JOIN metrics.server_minute AS t  -- check, grain, once
        ON t.cluster = p.cluster AND t.server = p.src_server AND t.minute_utc = p.minute_utc AND t.hour_utc = p.hour_utc
    LEFT JOIN metrics.server_minute AS r  -- check, grain, once
        ON r.cluster = p.cluster AND r.server = p.dst_server AND r.minute_utc = p.minute_utc AND r.hour_utc = p.hour_utc
)

SELECT
    cluster,
    src_server,
    dst_server,
    minute_utc,
    hour_utc,
    queue_pairs,
    packets,
    read_packets,
    write_packets,
    send_packets,
    nak_packets,
    nak_packets / nullif(packets, 0) AS nak_ratio,
    CASE
        WHEN tx_bytes IS NOT NULL AND sender_payload IS NOT NULL  -- DECIMAL: the product is beyond 64 bits
            THEN CAST(round(CAST(tx_bytes AS DECIMAL(38, 6)) * payload / sender_payload) AS BIGINT)
        WHEN is_estimated THEN payload
    END AS bytes_estimate,
    tx_bytes / sender_payload AS bytes_factor,
    rtt_ns[1] AS rtt_p50_ns,
    rtt_ns[2] AS rtt_p99_ns
FROM scaled

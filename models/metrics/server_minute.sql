/* ---
about: Bytes received and sent by every owner of access ports in each minute, summed over its ports.
partition: hour_utc
grain: [cluster, server, minute_utc]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR owner of the ports, as in topology.hour_owners
  minute_utc: TIMESTAMP start of the minute
  hour_utc: TIMESTAMP the hour
  rx_bytes: BIGINT [B] bytes that its NICs received, the out bytes of its ports
  tx_bytes: BIGINT [B] bytes that its NICs sent, the in bytes of its ports
  quality: VARCHAR quality of the worst second of its ports, fine, coarse or gap; in a gap the bytes are means of the gap
time: minute_utc
dimensions: [cluster, server, quality]
measures:
  rx_bytes, tx_bytes: sum, shown in GB
sources: docs/metrics/rates.md
--- */
SELECT
    o.cluster,
    o.server,
    m.minute_utc,
    m.hour_utc,
    sum(m.out_bytes) AS rx_bytes,
    sum(m.in_bytes) AS tx_bytes,
    ['fine', 'coarse', 'gap'][max(list_position(['fine', 'coarse', 'gap'], m.quality))] AS quality
FROM topology.hour_owners AS o
JOIN metrics.port_minute AS m USING (cluster, switch, port, hour_utc)  -- check of server_hour
GROUP BY ALL

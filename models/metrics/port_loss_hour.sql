/* ---
about: Packets that a port marked for congestion (ECN) or lost in one hour, from the hour's link and port tables.
partition: hour_utc
grain: [cluster, switch, port, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch, including spines
  port: VARCHAR full name of the port
  hour_utc: TIMESTAMP the hour
  ecn_marked: BIGINT [1] packets marked for congestion; NULL where the link table has no row of the port
  in_loss_packets: BIGINT [1] inbound packets lost; NULL where the port table has no row of the port
  out_loss_packets: BIGINT [1] outbound packets lost; NULL where the port table has no row of the port
time: hour_utc
measures:
  ecn_marked, in_loss_packets, out_loss_packets: sum
checks:
  - total(ecn_marked) = total(staging.hour_link.ecn_marked)
  - total(in_loss_packets) = total(staging.hour_port.in_loss_packets)
  - total(out_loss_packets) = total(staging.hour_port.out_loss_packets)
sources: docs/metrics/flows.md
--- */
WITH marked AS (
    SELECT cluster, switch, port, hour_utc, sum(ecn_marked) AS ecn_marked
    FROM staging.hour_link
    GROUP BY ALL
),

lost AS (
    SELECT
        cluster,
        switch,
        port,
        hour_utc,
        sum(in_loss_packets) AS in_loss_packets,
        sum(out_loss_packets) AS out_loss_packets
    FROM staging.hour_port
    GROUP BY ALL
)

SELECT
    coalesce(m.cluster, l.cluster) AS cluster,
    coalesce(m.switch, l.switch) AS switch,
    coalesce(m.port, l.port) AS port,
    coalesce(m.hour_utc, l.hour_utc) AS hour_utc,
    m.ecn_marked,
    l.in_loss_packets,
    l.out_loss_packets
FROM marked AS m
FULL JOIN lost AS l USING (cluster, switch, port, hour_utc)  -- check

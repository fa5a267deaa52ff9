/* ---
about: Every port of a leaf, with the device at the other end and its bytes in the latest hour of its cluster.
--- */
WITH latest AS (
    SELECT cluster, max(hour_utc) AS hour_utc
    FROM metrics.port_hour
    GROUP BY cluster
)

SELECT
    p.cluster,
    p.switch,
    p.port,
    p.port_class,
    p.line_rate_bps,
    p.server,
    p.nic,
    p.peer_switch,
    p.peer_port,
    p.source,
    h.in_bytes,
    h.out_bytes,
    h.in_utilization,
    h.out_utilization,
    h.hour_utc
FROM topology.ports AS p
LEFT JOIN latest AS l USING (cluster)
LEFT JOIN metrics.port_hour AS h
    ON h.cluster = p.cluster AND h.switch = p.switch AND h.port = p.port AND h.hour_utc = l.hour_utc

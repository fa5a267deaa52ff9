/* ---
about: Every NIC of a server with its leaf port, and its bytes received and sent in the latest hour.
--- */
WITH latest AS (
    SELECT cluster, max(hour_utc) AS hour_utc
    FROM metrics.port_hour
    GROUP BY cluster
),

plugged AS (                   -- NICs of the sheets, and ports without an owner in the sheets
    SELECT
        coalesce(n.cluster, o.cluster) AS cluster,
        coalesce(n.server, o.server) AS server,
        coalesce(n.hca, o.hca) AS hca,
        coalesce(n.nic, o.nic) AS nic,
        n.nic_ip,
        coalesce(n.switch, o.switch) AS switch,
        coalesce(n.port, o.port) AS port,
        n.status,
        n.reason,
        coalesce(n.evidence, o.evidence) AS evidence
    FROM topology.nic_ports AS n
    FULL JOIN topology.port_owners AS o
        ON o.cluster = n.cluster AND o.server = n.server AND o.switch = n.switch AND o.port = n.port
)

SELECT
    p.*,
    h.out_bytes AS rx_bytes,
    h.in_bytes AS tx_bytes,
    h.out_utilization AS rx_utilization,
    h.in_utilization AS tx_utilization,
    h.hour_utc
FROM plugged AS p
LEFT JOIN latest AS l USING (cluster)
LEFT JOIN metrics.port_hour AS h
    ON h.cluster = p.cluster AND h.switch = p.switch AND h.port = p.port AND h.hour_utc = l.hour_utc
WHERE NOT starts_with(p.server, 'unlisted:')

/* ---
about: Switch ports of a server's NICs, with their bytes in an hour, in steps of 5 minutes.
question: What does a server do, and where is it plugged in?
aliases: [nics, server-nics]
params:
  server: VARCHAR the server, as GPU-35, or another owner of ports, as GPU-121/122
  hca: VARCHAR = null only this NIC, as mlx5_2
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [hca, nic, switch, port, spread, bytes]
--- */
WITH chosen AS (
    SELECT coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour)) AS hour_utc
),
owned AS (                          -- ports that the NIC sheet does not name, on leaves with or without counters
    SELECT o.cluster, o.server, o.hca, o.nic, o.switch, o.port, o.evidence
    FROM topology.port_owners AS o
    ANTI JOIN topology.nic_ports AS n USING (cluster, switch, port)
    UNION
    SELECT o.cluster, o.server, o.hca, o.nic, o.switch, o.port, o.evidence
    FROM topology.hour_owners AS o
    ANTI JOIN topology.nic_ports AS n USING (cluster, switch, port)
    WHERE o.hour_utc = (SELECT hour_utc FROM chosen)
),
nics AS (
    SELECT cluster, server, hca, nic, switch, port, status, reason FROM topology.nic_ports
    UNION ALL
    SELECT cluster, server, hca, nic, switch, port, CASE evidence WHEN 'workbook' THEN 'resolved' ELSE 'inferred' END, NULL
    FROM owned
),
asked AS (
    SELECT * FROM nics WHERE lower(server) = lower($server) AND ($hca IS NULL OR hca = $hca)
),
slots AS (                          -- 12 per port and hour, 5 minutes each
    SELECT p.cluster, p.switch, p.port, s.slot, coalesce(sum(m.in_bytes + m.out_bytes), 0) AS bytes
    FROM (SELECT DISTINCT cluster, switch, port FROM asked WHERE port IS NOT NULL) AS p
    CROSS JOIN range(12) AS s(slot)
    CROSS JOIN chosen AS c
    LEFT JOIN metrics.port_minute AS m
        ON m.cluster = p.cluster AND m.switch = p.switch AND m.port = p.port
        AND m.hour_utc = c.hour_utc AND minute(m.minute_utc) // 5 = s.slot
    GROUP BY ALL
),
heights AS (                        -- height 0 to 7, relative to the port's own maximum
    SELECT cluster, switch, port, slot,
        coalesce(7 * bytes // nullif(max(bytes) OVER (PARTITION BY cluster, switch, port), 0), 0)::INTEGER AS height
    FROM slots
),
spreads AS (
    SELECT cluster, switch, port, string_agg(substr('▁▂▃▄▅▆▇█', height + 1, 1), '' ORDER BY slot) AS spread
    FROM heights
    GROUP BY ALL
)
SELECT n.hca, n.nic, n.switch, n.port,
    CASE WHEN h.port IS NOT NULL THEN s.spread END AS spread,
    h.in_bytes + h.out_bytes AS bytes,
    n.status, n.reason, h.out_bytes AS rx_bytes, h.in_bytes AS tx_bytes, n.server, h.hour_utc, n.cluster
FROM asked AS n
CROSS JOIN chosen AS c
LEFT JOIN metrics.port_hour AS h
    ON h.cluster = n.cluster AND h.switch = n.switch AND h.port = n.port AND h.hour_utc = c.hour_utc
LEFT JOIN spreads AS s ON s.cluster = n.cluster AND s.switch = n.switch AND s.port = n.port
ORDER BY n.cluster, n.server, n.hca, n.switch, n.port

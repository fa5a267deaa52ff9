/* ---
about: Where the NICs of a server are, what they moved in an hour, and when in steps of 5 minutes.
params:
  server: VARCHAR the server, as GPU-35
  hca: VARCHAR = null only this NIC, as mlx5_2
  hour: TIMESTAMP = null the hour (UTC); the latest where left out
--- */
WITH chosen AS (
    SELECT coalesce($hour::TIMESTAMP, max(hour_utc)) AS hour_utc FROM metrics.port_hour
),
nics AS (
    SELECT * FROM topology.nic_ports
    WHERE lower(server) = lower($server) AND ($hca IS NULL OR hca = $hca)
),
slots AS (                          -- 12 a port and hour, 5 minutes each
    SELECT p.cluster, p.switch, p.port, s.slot, coalesce(sum(m.in_bytes + m.out_bytes), 0) AS bytes
    FROM (SELECT DISTINCT cluster, switch, port FROM nics WHERE port IS NOT NULL) AS p
    CROSS JOIN range(12) AS s(slot)
    CROSS JOIN chosen AS c
    LEFT JOIN metrics.port_minute AS m
        ON m.cluster = p.cluster AND m.switch = p.switch AND m.port = p.port
        AND m.hour_utc = c.hour_utc AND minute(m.minute_utc) // 5 = s.slot
    GROUP BY ALL
),
heights AS (                        -- 0 to 7, of the port's own highest
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
FROM nics AS n
CROSS JOIN chosen AS c
LEFT JOIN metrics.port_hour AS h
    ON h.cluster = n.cluster AND h.switch = n.switch AND h.port = n.port AND h.hour_utc = c.hour_utc
LEFT JOIN spreads AS s ON s.cluster = n.cluster AND s.switch = n.switch AND s.port = n.port
ORDER BY n.cluster, n.server, n.hca

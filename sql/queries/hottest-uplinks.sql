/* ---
about: Uplinks with the highest utilization over an hour, in their busier direction.
question: How full is the fabric, and how even?
aliases: [fullest-uplinks, fullest-uplink]
params:
  leaf: VARCHAR = null only uplinks of this leaf, as Leaf-10
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 20 number of rows
answer: [leaf, leaf_port, spine, utilization, direction]
ranked: utilization desc
--- */
-- utilization: mean rate of the hour over the line rate, in the busier direction
SELECT h.switch AS leaf, h.port AS leaf_port, p.peer_switch AS spine,
    round(greatest(h.in_utilization, h.out_utilization), 4) AS utilization,
    CASE WHEN h.in_utilization >= h.out_utilization THEN 'in' ELSE 'out' END AS direction,
    h.in_bytes, h.out_bytes, h.in_p99_bps, h.out_p99_bps, p.line_rate_bps, p.peer_port AS spine_port,
    h.hour_utc, h.cluster
FROM metrics.port_hour AS h
JOIN topology.ports AS p USING (cluster, switch, port)
WHERE p.port_class IN ('uplink', 'storage_uplink')
    AND h.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
    AND ($leaf IS NULL OR h.switch = $leaf)
ORDER BY greatest(h.in_utilization, h.out_utilization) DESC NULLS LAST, h.cluster, h.switch, h.port
LIMIT $limit

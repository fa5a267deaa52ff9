/* ---
about: Each uplink of a leaf in an hour, with its bytes over the mean of the leaf's uplinks, those furthest from the mean first.
question: How full is the fabric, and how even?
params:
  leaf: VARCHAR the leaf, as Leaf-10
  way: VARCHAR = 'out' out or in
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [leaf_port, spine, bytes, over_mean, suspect]
--- */
-- over_mean: bytes of the uplink over the mean of the leaf's uplinks in this direction
WITH one_way AS (
    SELECT cluster, switch, port, kind
    FROM metrics.suspect_links
    WHERE kind IN ('uplink_no_data_' || $way, 'uplink_silent_' || $way)
),
moved AS (
    SELECT cluster, switch, port, hour_utc, CASE $way WHEN 'in' THEN in_bytes ELSE out_bytes END AS bytes
    FROM metrics.port_hour
    WHERE switch = $leaf AND port_class IN ('uplink', 'storage_uplink')
        AND hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
)
SELECT m.port AS leaf_port, u.spine, m.bytes,
    round(m.bytes / nullif(avg(m.bytes) OVER (PARTITION BY m.cluster), 0), 4) AS over_mean,
    o.kind AS suspect, u.spine_port, m.switch AS leaf, $way AS direction, m.hour_utc, m.cluster
FROM moved AS m
LEFT JOIN topology.uplinks AS u ON u.cluster = m.cluster AND u.leaf = m.switch AND u.leaf_port = m.port
LEFT JOIN one_way AS o ON o.cluster = m.cluster AND o.switch = m.switch AND o.port = m.port
ORDER BY abs(m.bytes - avg(m.bytes) OVER (PARTITION BY m.cluster)) DESC, m.cluster, length(m.port), m.port

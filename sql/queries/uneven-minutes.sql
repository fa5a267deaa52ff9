/* ---
about: Minutes in which a leaf's uplinks were least even, compared with a fair hash of as many flows.
question: How full is the fabric, and how even?
params:
  leaf: VARCHAR = null only this leaf, as Leaf-10
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 20 number of rows
answer: [leaf, direction, minute_utc, cov, hash_null_p99, over_null]
ranked: over_null desc
--- */
-- cov: standard deviation of the bytes of the leaf's uplinks in the minute, over their mean hash_null_p99: the
--   same for a fair hash of flows_assumed equal flows, exceeded in 1 of 100 minutes
-- over_null: cov over hash_null_p99; chance has 1 of 100 minutes above 1, and fewer than 1 of 1,000 above 1.5
WITH moved AS (
    SELECT m.cluster, m.switch, m.minute_utc, d.direction, m.port, CASE d.direction WHEN 'in' THEN m.in_bytes ELSE m.out_bytes END AS bytes
    FROM metrics.port_minute AS m
    JOIN staging.port_files AS p USING (cluster, switch, port, hour_utc)
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)
    WHERE p.port_class IN ('uplink', 'storage_uplink')
),
fullest AS (
    SELECT cluster, switch, minute_utc, direction, arg_max(port, (bytes, port)) AS fullest_uplink
    FROM moved
    GROUP BY ALL
)
SELECT b.switch AS leaf, b.direction, b.minute_utc, round(b.cov, 4) AS cov, round(b.hash_null_p99, 4) AS hash_null_p99,
    b.flows_assumed, round(b.cov / b.hash_null_p99, 2) AS over_null, f.fullest_uplink, round(b.max_over_mean, 3) AS max_over_mean,
    b.uplinks, b.total_bytes, b.flows_source, b.hour_utc, b.cluster
FROM metrics.uplink_balance_minute AS b
LEFT JOIN fullest AS f USING (cluster, switch, minute_utc, direction)
WHERE b.cov IS NOT NULL AND b.hash_null_p99 > 0 AND ($leaf IS NULL OR b.switch = $leaf)
    AND b.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.uplink_balance_minute))
ORDER BY b.cov / b.hash_null_p99 DESC, b.cluster, b.switch, b.minute_utc, b.direction
LIMIT $limit

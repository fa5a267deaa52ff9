/* ---
about: Balance of a leaf over its uplinks in each minute of an hour, beside what a fair hash of as many flows would give.
question: How full is the fabric, and how even?
aliases: [leaf-minutes, balance-by-minute]
params:
  leaf: VARCHAR the leaf, as Leaf-10
  way: VARCHAR = 'out' out or in
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 60 number of rows
answer: [minute, total_bytes, cov, hash_null_p99, fullest_uplink, over_mean, quality]
--- */
-- cov: standard deviation of the bytes of the leaf's uplinks in the minute, over their mean hash_null_p99: the
--   same for a fair hash of the assumed flows, exceeded in 1 of 100 minutes
-- over_mean: bytes of the fullest uplink over the mean of the leaf's uplinks
WITH moved AS (
    SELECT m.cluster, m.minute_utc, m.port, CASE $way WHEN 'in' THEN m.in_bytes ELSE m.out_bytes END AS bytes
    FROM metrics.port_minute AS m
    JOIN staging.port_files AS p USING (cluster, switch, port, hour_utc)
    WHERE m.switch = $leaf AND p.port_class IN ('uplink', 'storage_uplink')
        AND m.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.uplink_balance_minute))
),
fullest AS (
    SELECT cluster, minute_utc, arg_max(port, (bytes, port)) AS fullest_uplink
    FROM moved
    GROUP BY ALL
)
SELECT strftime(b.minute_utc, '%H:%M') AS minute, b.total_bytes, round(b.cov, 4) AS cov, round(b.hash_null_p99, 4) AS hash_null_p99,
    CASE WHEN b.cov IS NOT NULL THEN f.fullest_uplink END AS fullest_uplink, round(b.max_over_mean, 3) AS over_mean, b.quality,
    b.covered_ms, b.flows_assumed, b.flows_source, b.uplinks, b.direction, b.minute_utc, b.switch AS leaf, b.hour_utc, b.cluster
FROM metrics.uplink_balance_minute AS b
LEFT JOIN fullest AS f USING (cluster, minute_utc)
WHERE b.switch = $leaf AND b.direction = $way
    AND b.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.uplink_balance_minute))
ORDER BY b.cluster, b.minute_utc
LIMIT $limit

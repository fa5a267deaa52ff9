/* ---
about: Leaves with the least even traffic over their uplinks, by coefficient of variation.
question: How full is the fabric, and how even?
aliases: [uplink-balance, uneven-leaves]
params:
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 10 number of rows
answer: [leaf, direction, uplinks, cov, max_over_mean, one_way_uplinks]
ranked: cov desc
--- */
-- cov: standard deviation of the bytes of the leaf's uplinks, over their mean
-- max_over_mean: bytes of the fullest uplink, over the same mean
WITH one_way AS (
    SELECT cluster, switch, regexp_extract(kind, '[a-z]+$') AS direction, string_agg(port, ', ' ORDER BY port) AS one_way_uplinks
    FROM metrics.suspect_links
    WHERE starts_with(kind, 'uplink_')
    GROUP BY ALL
)
SELECT b.switch AS leaf, b.direction, b.uplinks, round(b.cov, 4) AS cov,
    round(b.max_over_mean, 3) AS max_over_mean, round(b.jain_index, 4) AS jain_index,
    o.one_way_uplinks, b.mean_bytes, b.hour_utc, b.cluster
FROM metrics.uplink_balance AS b
LEFT JOIN one_way AS o USING (cluster, switch, direction)
WHERE b.cov IS NOT NULL
    AND b.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.uplink_balance))
ORDER BY b.cov DESC, b.cluster, b.switch, b.direction
LIMIT $limit

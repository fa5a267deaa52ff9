/* ---
about: 'The heaviest pairs of an hour with what counters prove about each: of all leaves, or of one server. Bytes within a leaf are the pair of the leaf with itself.'
question: Who trains together, over which ports, how much?
params:
  server: VARCHAR = null pairs of this server, as GPU-35, in place of pairs of leaves
  pairs: BIGINT = 10 number of pairs
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [src, dst, bytes_low, bytes_estimate, bytes_high, width, evidence]
ranked: bytes_estimate desc
--- */
-- width: bytes_high - bytes_low over bytes_estimate; 0 is known to the byte
WITH cells AS (
    SELECT *
    FROM metrics.leaf_matrix
    WHERE $server IS NULL
    UNION ALL BY NAME
    SELECT *
    FROM metrics.traffic_matrix
    WHERE $server IN (src, dst)
)
SELECT src, dst, bytes_low, bytes_estimate, bytes_high,
    round((bytes_high - bytes_low) / nullif(bytes_estimate, 0), 3) AS width, evidence, hour_utc, cluster
FROM cells
WHERE bytes_estimate > 0 AND hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM cells))
ORDER BY bytes_estimate DESC, cluster, src, dst
LIMIT $pairs

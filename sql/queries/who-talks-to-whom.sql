/* ---
about: 'The heaviest pairs of an hour with what counters prove about each: of all leaves, or of one server. Bytes within a leaf are the pair of the leaf with itself.'
question: Who trains together, over which ports, how much?
params:
  server: VARCHAR = null pairs of this server, as GPU-35, in place of pairs of leaves
  pairs: BIGINT = 10 number of pairs
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [src, dst, low_bytes, estimate_bytes, high_bytes, width, evidence]
ranked: estimate_bytes desc
--- */
-- width: high_bytes - low_bytes over estimate_bytes; 0 is known to the byte
WITH cells AS (
    SELECT cluster, src, dst, hour_utc, bytes_low, bytes_estimate, bytes_high, evidence, pattern
    FROM metrics.leaf_matrix
    WHERE $server IS NULL
    UNION ALL
    SELECT cluster, src, dst, hour_utc, bytes_low, bytes_estimate, bytes_high, evidence, NULL AS pattern
    FROM metrics.traffic_matrix
    WHERE $server IN (src, dst)
)
SELECT src, dst, bytes_low AS low_bytes, bytes_estimate AS estimate_bytes, bytes_high AS high_bytes,
    round((bytes_high - bytes_low) / nullif(bytes_estimate, 0), 3) AS width, evidence, pattern, hour_utc, cluster
FROM cells
WHERE bytes_estimate > 0 AND hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM cells))
ORDER BY estimate_bytes DESC, cluster, src, dst
LIMIT $pairs

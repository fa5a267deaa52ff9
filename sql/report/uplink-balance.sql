/* ---
about: How evenly each switch spreads its traffic over its uplinks, in the latest hour of its cluster.
--- */
WITH dead AS (
    SELECT cluster, switch, replace(kind, 'uplink_dead_', '') AS direction, string_agg(port, ', ' ORDER BY port) AS ports
    FROM metrics.suspect_links
    WHERE kind IN ('uplink_dead_in', 'uplink_dead_out')
    GROUP BY cluster, switch, kind
)
SELECT
    b.switch,
    b.direction,
    b.uplinks,
    round(100 * b.cov, 2) AS cov_percent,
    round(b.max_over_mean, 3) AS max_over_mean,
    round(b.jain_index, 4) AS jain_index,
    round(b.mean_bytes)::BIGINT AS mean_bytes,
    d.ports AS dead_uplinks,
    b.hour_utc,
    b.cluster,
    row_number() OVER (ORDER BY b.cov DESC, b.cluster, b.switch, b.direction) AS place
FROM metrics.uplink_balance AS b
LEFT JOIN dead AS d USING (cluster, switch, direction)
WHERE b.cov IS NOT NULL
QUALIFY b.hour_utc = max(b.hour_utc) OVER (PARTITION BY b.cluster)
ORDER BY b.cluster, starts_with(b.switch, 'ST-'), length(b.switch), b.switch, b.direction

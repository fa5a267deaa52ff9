/* ---
about: Balance of each leaf's traffic over its uplinks in an hour.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH dead AS (
    SELECT
        switch,
        replace(kind, 'uplink_dead_', '') AS direction,
        string_agg(regexp_extract(port, '[0-9].*$'), ', ' ORDER BY length(port), port) AS ports
    FROM metrics.suspect_links
    WHERE cluster = $cluster AND kind IN ('uplink_dead_in', 'uplink_dead_out')
    GROUP BY ALL
)
SELECT
    b.switch,
    b.direction,
    b.uplinks,
    round(100 * b.cov, 1) AS cov_percent,
    round(b.max_over_mean, 3) AS max_over_mean,
    round(b.jain_index, 4) AS jain_index,
    round(b.mean_bytes)::BIGINT AS mean_bytes,
    d.ports AS dead_uplinks,
    b.cov >= k.threshold AND w.role = 'leaf' AS uneven,
    w.role = 'leaf' AS judged,
    100 * k.threshold AS threshold_percent,
    row_number() OVER (ORDER BY w.role = 'leaf' DESC, b.cov DESC, b.switch, b.direction) AS place
FROM metrics.uplink_balance AS b
JOIN topology.switches AS w USING (cluster, switch)
LEFT JOIN dead AS d USING (switch, direction)
CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'uneven_leaf') AS k
WHERE b.cluster = $cluster AND b.hour_utc = $hour AND b.cov IS NOT NULL
ORDER BY starts_with(b.switch, 'ST-'), length(b.switch), b.switch, b.direction

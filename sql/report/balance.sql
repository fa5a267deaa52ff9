/* ---
about: Balance of each leaf's traffic over its uplinks in an hour.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH one_way AS (
    SELECT
        switch,
        regexp_extract(kind, '[a-z]+$') AS direction,
        string_agg(regexp_extract(port, '[0-9].*$'), ', ' ORDER BY length(port), port) AS ports
    FROM metrics.suspect_links
    WHERE cluster = $cluster AND starts_with(kind, 'uplink_')
    GROUP BY ALL
),
spine_bytes AS (
    SELECT u.spine, d.direction, sum(CASE d.direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END) AS bytes
    FROM metrics.port_hour AS h
    JOIN topology.hour_uplinks AS u
        ON u.cluster = h.cluster AND u.leaf = h.switch AND u.leaf_port = h.port AND u.hour_utc = h.hour_utc
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)
    WHERE h.cluster = $cluster AND h.hour_utc = $hour AND u.spine IS NOT NULL
    GROUP BY u.spine, d.direction
),
spines AS (                         -- the spine farthest from the mean of the spines, over the loaded leaves
    SELECT spine, direction, off_mean
    FROM (
        SELECT *, bytes / nullif(avg(bytes) OVER (PARTITION BY direction), 0) - 1 AS off_mean
        FROM spine_bytes
    ) AS compared
    ORDER BY abs(off_mean) DESC NULLS LAST, spine, direction
    LIMIT 1
)
SELECT
    b.switch,
    b.direction,
    b.uplinks,
    round(100 * b.cov, 1) AS cov_percent,
    round(b.max_over_mean, 3) AS max_over_mean,
    round(b.jain_index, 4) AS jain_index,
    round(b.mean_bytes)::BIGINT AS mean_bytes,
    d.ports AS one_way_uplinks,
    b.cov >= k.threshold AND w.role = 'leaf' AS uneven,
    w.role = 'leaf' AS judged,
    100 * k.threshold AS threshold_percent,
    f.spine,
    f.direction AS spine_direction,
    round(100 * f.off_mean, 1) AS spine_off_percent,
    abs(f.off_mean) >= s.threshold AS spine_uneven,
    row_number() OVER (ORDER BY w.role = 'leaf' DESC, b.cov DESC, b.switch, b.direction) AS place
FROM metrics.uplink_balance AS b
JOIN topology.switches AS w USING (cluster, switch)
LEFT JOIN one_way AS d USING (switch, direction)
CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'uneven_leaf') AS k
CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'spine_out_of_line') AS s
LEFT JOIN spines AS f ON true
WHERE b.cluster = $cluster AND b.hour_utc = $hour AND b.cov IS NOT NULL
ORDER BY starts_with(b.switch, 'ST-'), length(b.switch), b.switch, b.direction

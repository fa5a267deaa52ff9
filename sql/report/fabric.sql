/* ---
about: The links of a cluster: leaf groups of servers, leaves and spines, by the fuller direction in its latest hour.
params:
  cluster: VARCHAR the cluster
--- */
WITH loads AS (                     -- each port, by its fuller direction
    SELECT switch, port, greatest(in_utilization, out_utilization) AS utilization, hour_utc
    FROM metrics.port_hour
    WHERE cluster = $cluster
    QUALIFY hour_utc = max(hour_utc) OVER ()
),
suspects AS (
    SELECT switch, port, string_agg(DISTINCT kind, ', ' ORDER BY kind) AS kinds
    FROM metrics.suspect_links
    WHERE cluster = $cluster
    GROUP BY switch, port
),
links AS (                          -- a row a port that leads up to a spine or down to servers
    SELECT
        CASE WHEN p.port_class IN ('uplink', 'storage_uplink') THEN 'uplink' ELSE 'access' END AS tier,
        s.leaf_group,
        p.switch AS leaf,
        p.port,
        p.peer_switch AS spine,
        p.server
    FROM topology.ports AS p
    JOIN topology.switches AS s USING (cluster, switch)
    WHERE p.cluster = $cluster
        AND CASE
            WHEN p.port_class IN ('uplink', 'storage_uplink') THEN p.peer_switch IS NOT NULL
            ELSE p.port_class IN ('access', 'storage_access') AND p.server IS NOT NULL
        END
)
SELECT
    k.tier,
    k.leaf_group,
    k.leaf,
    k.spine,
    count(*) AS links,
    count(DISTINCT k.server) AS servers,
    round(100 * avg(l.utilization), 1) AS mean_percent,
    round(100 * max(l.utilization), 1) AS fullest_percent,
    count(u.kinds) AS suspect_links,
    string_agg(k.port || ' ' || u.kinds, '; ' ORDER BY k.port) FILTER (WHERE u.kinds IS NOT NULL) AS suspects
FROM links AS k
LEFT JOIN loads AS l ON l.switch = k.leaf AND l.port = k.port
LEFT JOIN suspects AS u ON u.switch = k.leaf AND u.port = k.port
GROUP BY k.tier, k.leaf_group, k.leaf, k.spine
ORDER BY k.tier DESC, starts_with(k.leaf, 'ST-'), length(k.leaf), k.leaf, length(k.spine), k.spine

/* ---
about: 'The links of a cluster: leaf groups of servers, leaves and spines, by the fuller direction in its latest hour.'
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
    SELECT switch, port, string_agg(kind, ', ' ORDER BY kind) AS kinds, count(*) AS suspicions
    FROM metrics.suspect_links
    WHERE cluster = $cluster
    GROUP BY switch, port
),
links AS (                          -- a row a port that leads up to a spine or down to servers, or is suspect
    SELECT
        CASE
            WHEN p.port_class IN ('uplink', 'storage_uplink') AND p.peer_switch IS NOT NULL THEN 'uplink'
            ELSE 'access'
        END AS tier,
        s.leaf_group,
        p.switch AS leaf,
        p.port,
        p.peer_switch AS spine,
        p.server,
        l.utilization,
        u.kinds,
        u.suspicions
    FROM topology.ports AS p
    JOIN topology.switches AS s USING (cluster, switch)
    LEFT JOIN loads AS l USING (switch, port)
    LEFT JOIN suspects AS u USING (switch, port)
    WHERE p.cluster = $cluster
        AND (
            u.kinds IS NOT NULL
            OR CASE
                WHEN p.port_class IN ('uplink', 'storage_uplink') THEN p.peer_switch IS NOT NULL
                ELSE p.port_class IN ('access', 'storage_access') AND p.server IS NOT NULL
            END
        )
)
SELECT
    tier,
    leaf_group,
    leaf,
    spine,
    count(*) AS links,
    count(DISTINCT server) AS servers,
    round(100 * avg(utilization), 1) AS mean_percent,
    round(100 * max(utilization), 2) AS fullest_percent,
    arg_max(port, (utilization, port)) FILTER (WHERE utilization IS NOT NULL) AS fullest_port,
    coalesce(sum(suspicions), 0)::BIGINT AS suspect_links,
    string_agg(port || ' ' || kinds, '; ' ORDER BY port) FILTER (WHERE kinds IS NOT NULL) AS suspects,
    row_number() OVER (ORDER BY tier DESC, max(utilization) DESC NULLS LAST, leaf, spine) AS place
FROM links
GROUP BY tier, leaf_group, leaf, spine
ORDER BY tier DESC, starts_with(leaf, 'ST-'), length(leaf), leaf, length(spine), spine

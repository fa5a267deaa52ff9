/* ---
about: Groups of servers that pulse together with their period and its standard error, in the latest hour of their cluster.
--- */
SELECT
    g.cluster,
    g.hour_utc,
    g.group_id,
    g.server,
    g.servers,
    j.period
FROM metrics.traffic_groups AS g
LEFT JOIN metrics.traffic_jobs AS j ON j.cluster = g.cluster AND j.hour_utc = g.hour_utc AND j.group_id = g.group_id
QUALIFY g.hour_utc = max(g.hour_utc) OVER (PARTITION BY g.cluster)
ORDER BY g.cluster, g.group_id, length(g.server), g.server

/* ---
about: Groups of servers that pulse together with their period and its standard error, in the latest hour of their cluster.
--- */
SELECT
    g.cluster,
    g.group_id,
    any_value(g.servers) AS servers,
    any_value(j.period) AS period,
    string_agg(g.server, ', ' ORDER BY length(g.server), g.server) AS which
FROM metrics.traffic_groups AS g
LEFT JOIN metrics.traffic_jobs AS j USING (cluster, hour_utc, group_id)
GROUP BY g.cluster, g.hour_utc, g.group_id
QUALIFY g.hour_utc = max(g.hour_utc) OVER (PARTITION BY g.cluster)
ORDER BY g.cluster, g.group_id

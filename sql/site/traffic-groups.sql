/* ---
about: Groups of servers that pulse together, in the latest hour of their cluster.
--- */
SELECT cluster, hour_utc, group_id, server, servers, period_seconds, correlation
FROM metrics.traffic_groups
QUALIFY hour_utc = max(hour_utc) OVER (PARTITION BY cluster)
ORDER BY cluster, group_id, length(server), server

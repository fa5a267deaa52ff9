/* ---
about: 'Servers that pulsed together in the latest hour: jobs as the network sees them.'
--- */
SELECT
    g.group_id AS "group",
    g.servers,
    round(g.period_seconds, 2) AS period_seconds,
    round(avg(p.duty_cycle), 2) AS duty_cycle,
    round(min(g.correlation), 2) AS least_correlation,
    string_agg(g.server, ' ' ORDER BY length(g.server), g.server) AS which,
    g.hour_utc,
    g.cluster
FROM metrics.traffic_groups AS g
JOIN metrics.traffic_periods AS p USING (cluster, server, hour_utc)
WHERE g.hour_utc = (SELECT max(hour_utc) FROM metrics.traffic_groups)
GROUP BY g.cluster, g.hour_utc, g.group_id, g.servers, g.period_seconds
ORDER BY g.servers DESC, g.cluster, g.group_id

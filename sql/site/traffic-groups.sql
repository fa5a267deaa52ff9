/* ---
about: Groups of servers that pulse together with their period and its standard error, in the latest hour of their cluster.
--- */
SELECT
    g.cluster,
    g.hour_utc,
    g.group_id,
    g.server,
    g.servers,
    printf('%.*f ± %.*f s', j.digits, j.period_seconds, j.digits, j.period_error_seconds) AS period
FROM metrics.traffic_groups AS g
LEFT JOIN (
    SELECT
        *,
        CASE
            WHEN period_error_seconds >= 1 THEN 0
            WHEN period_error_seconds >= 0.1 THEN 1
            WHEN period_error_seconds >= 0.01 THEN 2
            WHEN period_error_seconds >= 0.001 THEN 3
            ELSE 4
        END AS digits
    FROM metrics.traffic_jobs
) AS j ON j.cluster = g.cluster AND j.hour_utc = g.hour_utc AND j.job_id = g.group_id
QUALIFY g.hour_utc = max(g.hour_utc) OVER (PARTITION BY g.cluster)
ORDER BY g.cluster, g.group_id, length(g.server), g.server

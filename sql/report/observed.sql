/* ---
about: What the loaded files observed, one line per cluster with counters and per kind of other files.
--- */
WITH leaves AS (                -- the leaves with counters, and all that the workbook or reference.clusters knows
    SELECT
        s.cluster,
        count(*) FILTER (WHERE s.has_counters) AS loaded,
        greatest(count(*), coalesce(max(c.leaves + c.storage_leaves), 0)) AS known
    FROM topology.switches AS s
    LEFT JOIN reference.clusters AS c USING (cluster)
    WHERE s.role IN ('leaf', 'storage_leaf')
    GROUP BY s.cluster
),
counters AS (
    SELECT
        cluster,
        count(DISTINCT hour_utc) AS hours,
        strftime(min(hour_utc), '%Y-%m-%d %H:%M') AS first_hour,
        CASE WHEN min(hour_utc)::DATE = max(hour_utc)::DATE THEN '' ELSE strftime(max(hour_utc), '%Y-%m-%d ') END
        || strftime(max(hour_utc), '%H:%M') AS last_hour,
        count(DISTINCT switch || ' ' || port) AS ports,
        sum(polls) AS polls
    FROM metrics.port_hour
    GROUP BY cluster
),
lines AS (
    SELECT
        1 AS place,
        c.cluster AS name,
        concat(
            CASE WHEN c.hours = 1 THEN 'the hour ' || c.first_hour ELSE format('{:,} hours, {} to {}', c.hours, c.first_hour, c.last_hour) END,
            ' UTC of ', c.cluster, ': ', l.loaded, ' of ', l.known, ' leaves, ', format('{:,}', c.ports), ' ports, ',
            format('{:,}', c.polls), ' polls'
        ) AS line
    FROM counters AS c
    JOIN leaves AS l USING (cluster)
    UNION ALL
    SELECT
        2 AS place,
        '' AS name,
        format('{:,} training task{} with logs, {:,} iterations', count(*), CASE count(*) WHEN 1 THEN '' ELSE 's' END, sum(iterations)) AS line
    FROM metrics.task_summary
    WHERE source = 'log'
    HAVING count(*) > 0
    UNION ALL
    SELECT 3 AS place, trace AS name, format('{:,} jobs of {}', count(*), trace) AS line
    FROM metrics.jobs
    GROUP BY trace
    UNION ALL
    SELECT
        4 AS place,
        '' AS name,
        format('{:,} utilization file{}', count(*), CASE count(*) WHEN 1 THEN '' ELSE 's' END) AS line
    FROM metrics.utilization_quality
    HAVING count(*) > 0
    UNION ALL
    SELECT
        5 AS place,
        '' AS name,
        format('{:,} published curve{} of utilization (AcmeTrace)', count(*), CASE count(*) WHEN 1 THEN '' ELSE 's' END) AS line
    FROM metrics.utilization_distribution
    WHERE origin <> 'measured'
    HAVING count(*) > 0
)
SELECT line
FROM lines
ORDER BY place, name

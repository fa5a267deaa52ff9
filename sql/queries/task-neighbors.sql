/* ---
about: Who else was on the wire. Other tasks and jobs whose servers moved bytes on the same leaves in the same minutes as a task, so that their traffic may have passed the same uplinks. No claim of harm.
question: Who trains together, over which ports, how much?
aliases: [task-neighbours, neighbors]
params:
  task: VARCHAR = null the task; default one with traffic, that has a log, else is listed, else the largest job of the traffic
  limit: INTEGER = 20 number of rows
answer: [leaf, neighbor, bytes, own_bytes, share_of_leaf, minutes]
--- */
-- bytes: that the leaf received from servers of the neighbor, in minutes in which it received bytes from the
--   task, too
-- neighbor: tasks on the same ports at the same time are one row
-- share_of_leaf: of the bytes that the leaf received from all servers in these minutes; how much took an uplink
--   no counter tells
WITH chosen AS (                    -- a task with traffic: the latest with a log, else the latest listed, else the largest job of the traffic
    SELECT coalesce($task, (
        SELECT task
        FROM metrics.task_traffic
        GROUP BY task
        ORDER BY bool_or(status <> 'no_overlap') DESC, list_position(['log', 'listed', 'inferred:traffic'], min(source)),
            CASE WHEN min(source) = 'inferred:traffic' THEN sum(rx_bytes + tx_bytes) END DESC NULLS LAST, task DESC
        LIMIT 1
    )) AS task
),
own AS (                       -- ports and time of the task
    SELECT DISTINCT cluster, switch, port, start_utc, end_utc FROM metrics.task_traffic WHERE task = (SELECT task FROM chosen)
),
used AS (                      -- tasks on each port; a job found in the traffic names ports that no log or list names
    SELECT DISTINCT cluster, switch, port, task, start_utc, end_utc
    FROM metrics.task_traffic AS t
    WHERE source <> 'inferred:traffic' OR NOT EXISTS (
        SELECT 1 FROM metrics.task_traffic AS k
        WHERE k.source <> 'inferred:traffic' AND k.cluster = t.cluster AND k.switch = t.switch AND k.port = t.port
            AND k.start_utc < t.end_utc AND k.end_utc > t.start_utc
    )
),
minutes AS (                   -- bytes that the leaves of the task received from each server port, by minute
    SELECT m.cluster, m.switch, m.port, m.minute_utc, m.hour_utc, m.in_bytes
    FROM metrics.port_minute AS m
    JOIN staging.port_files AS f USING (cluster, switch, port, hour_utc)
    WHERE f.port_class = 'access' AND m.in_bytes > 0 AND EXISTS (SELECT 1 FROM own AS o WHERE o.cluster = m.cluster AND o.switch = m.switch)
),
busy AS (                      -- minutes in which a leaf received bytes from the task
    SELECT m.cluster, m.switch, m.minute_utc, sum(m.in_bytes) AS own_bytes
    FROM minutes AS m
    JOIN own AS o USING (cluster, switch, port)
    WHERE m.minute_utc < o.end_utc AND m.minute_utc + INTERVAL '1 minute' > o.start_utc
    GROUP BY ALL
),
beside AS (
    SELECT m.cluster, m.switch, m.minute_utc, m.hour_utc, m.port, m.in_bytes,
        coalesce(string_agg(DISTINCT u.task, ', ' ORDER BY u.task), 'no task known') AS neighbor
    FROM minutes AS m
    SEMI JOIN busy AS b USING (cluster, switch, minute_utc)
    LEFT JOIN used AS u
        ON u.cluster = m.cluster AND u.switch = m.switch AND u.port = m.port
        AND m.minute_utc < u.end_utc AND m.minute_utc + INTERVAL '1 minute' > u.start_utc
    GROUP BY ALL
),
totals AS (
    SELECT cluster, switch, sum(in_bytes) AS leaf_bytes
    FROM minutes AS m
    SEMI JOIN busy AS b USING (cluster, switch, minute_utc)
    GROUP BY ALL
),
owns AS (SELECT cluster, switch, sum(own_bytes) AS own_bytes FROM busy GROUP BY ALL)
SELECT b.switch AS leaf, b.neighbor, sum(b.in_bytes)::BIGINT AS bytes, max(o.own_bytes)::BIGINT AS own_bytes,
    round(sum(b.in_bytes) / max(t.leaf_bytes), 3) AS share_of_leaf, count(DISTINCT b.minute_utc) AS minutes,
    count(DISTINCT b.port) AS ports, round(max(l.leaving_share), 4) AS leaving_share, min(b.hour_utc) AS hour_utc, b.cluster
FROM beside AS b
JOIN totals AS t USING (cluster, switch)
JOIN owns AS o USING (cluster, switch)
LEFT JOIN metrics.leaf_hour AS l USING (cluster, switch, hour_utc)
WHERE NOT list_contains(string_split(b.neighbor, ', '), (SELECT task FROM chosen))
GROUP BY b.cluster, b.switch, b.neighbor
ORDER BY length(b.switch), b.switch, bytes DESC, b.neighbor
LIMIT $limit

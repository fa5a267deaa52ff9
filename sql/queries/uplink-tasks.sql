/* ---
about: Uplinks with the highest utilization over an hour, and the bytes that their whole leaf received from the ports of each task. No counter shows how much of these bytes took the uplink. One row per uplink and task; servers without a task form one row, and tasks that share a NIC form one row.
question: Who trains together, over which ports, how much?
params:
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 5 number of uplinks
answer: [leaf, leaf_port, task, utilization, share_of_leaf]
ranked: utilization desc
--- */
-- utilization: mean rate of the hour over the line rate, in the busier direction
-- share_of_leaf: of the bytes that the leaf received from servers, not of the uplink's bytes
WITH hour AS (SELECT coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour)) AS hour_utc),
uplinks AS (
    SELECT h.cluster, h.switch AS leaf, h.port AS leaf_port, p.peer_switch AS spine, h.hour_utc,
        greatest(h.in_utilization, h.out_utilization) AS utilization
    FROM metrics.port_hour AS h
    JOIN topology.ports AS p USING (cluster, switch, port)
    WHERE p.port_class IN ('uplink', 'storage_uplink') AND h.hour_utc = (SELECT hour_utc FROM hour)
    ORDER BY utilization DESC NULLS LAST, h.cluster, h.switch, h.port
    LIMIT $limit
),
used AS (                           -- tasks that used each access port in that hour
    SELECT DISTINCT cluster, switch, port, task, source
    FROM metrics.task_traffic
    WHERE start_utc < (SELECT hour_utc FROM hour) + INTERVAL '1 hour' AND end_utc > (SELECT hour_utc FROM hour)
),
owned AS (                          -- a job found in the traffic names ports that no log or list names
    SELECT cluster, switch, port, string_agg(task, ', ' ORDER BY task) AS task, count(*) AS tasks_on_nic
    FROM used AS u
    WHERE u.source <> 'inferred:traffic' OR NOT EXISTS (
        SELECT 1 FROM used AS k WHERE k.source <> 'inferred:traffic' AND k.cluster = u.cluster AND k.switch = u.switch AND k.port = u.port
    )
    GROUP BY ALL
),
taken AS (                          -- bytes that each leaf received from servers, by task
    SELECT h.cluster, h.switch, o.task, o.tasks_on_nic, count(DISTINCT p.server) AS servers, sum(h.in_bytes)::BIGINT AS leaf_in_bytes
    FROM metrics.port_hour AS h
    JOIN topology.ports AS p USING (cluster, switch, port)
    LEFT JOIN owned AS o USING (cluster, switch, port)
    WHERE h.hour_utc = (SELECT hour_utc FROM hour) AND p.port_class = 'access' AND h.in_bytes >= 1000000000
    GROUP BY ALL
)
SELECT u.leaf, u.leaf_port, u.spine, round(u.utilization, 4) AS utilization, t.task, t.servers, t.leaf_in_bytes,
    round(t.leaf_in_bytes / sum(t.leaf_in_bytes) OVER (PARTITION BY u.cluster, u.leaf, u.leaf_port), 3) AS share_of_leaf,
    t.tasks_on_nic, u.hour_utc, u.cluster
FROM uplinks AS u
LEFT JOIN taken AS t ON t.cluster = u.cluster AND t.switch = u.leaf
ORDER BY u.utilization DESC, u.cluster, u.leaf, u.leaf_port, t.leaf_in_bytes DESC, t.task

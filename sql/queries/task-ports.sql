/* ---
about: Switch ports that carried a training task, with the bytes of its NICs in observed iterations.
question: Who trains together, over which ports, how much?
params:
  task: VARCHAR = null the task; default one with traffic, that has a log, else is listed, else the largest job of the traffic
answer: [server, hca, switch, port, tx_bytes, rx_bytes, status]
--- */
-- tx_bytes: of a task with a log in its observed iterations, of others in all of their time
WITH chosen AS (                    -- a task with traffic: the latest with a log, else the latest listed, else the largest job of the traffic
    SELECT coalesce($task, (
        SELECT task
        FROM metrics.task_traffic
        GROUP BY task
        ORDER BY bool_or(status <> 'no_overlap') DESC, list_position(['log', 'listed', 'inferred:traffic'], min(source)),
            CASE WHEN min(source) = 'inferred:traffic' THEN sum(rx_bytes + tx_bytes) END DESC NULLS LAST, task DESC
        LIMIT 1
    )) AS task
)
SELECT t.server, t.hca, t.switch, t.port, t.tx_bytes, t.rx_bytes, t.status, p.first_rank, p.evidence AS rank_evidence,
    n.evidence AS nic_evidence, t.gap_seconds, t.observed_seconds, t.source, t.start_utc, t.end_utc, t.pod, t.task, t.cluster
FROM metrics.task_traffic AS t
JOIN topology.task_pods AS p USING (cluster, task, pod)
JOIN topology.task_ports AS n USING (cluster, task, pod, hca)
WHERE t.task = (SELECT task FROM chosen)
ORDER BY t.cluster, p.first_rank NULLS LAST, t.pod, n.hca_index

/* ---
about: Bytes that each NIC of a training task sends per iteration, beside the expected bytes, nominal and as implemented by the framework. Of a task without a log, the bytes of all its time. Where several tasks use the NIC (tasks_on_nic), the bytes are the sum over all of them.
question: Who trains together, over which ports, how much?
aliases: [task-traffic]
params:
  task: VARCHAR = null the task; default one with traffic, that has a log, else is listed, else the largest job of the traffic
answer: [hca, status, tx_bytes, nominal_bytes, implemented_bytes, over_nominal, pod]
--- */
-- nominal_bytes: bytes that a NIC should send per iteration; implemented_bytes as the framework does it
-- over_nominal: tx_bytes over the bytes that the task should send per iteration
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
iterations AS (
    SELECT cluster, task, pod, hca, count(*) FILTER (WHERE quality = 'fine') AS iterations,
        median(tx_bytes) FILTER (WHERE quality = 'fine')::BIGINT AS tx_bytes,
        max(tasks_on_nic) FILTER (WHERE quality = 'fine') AS tasks_on_nic,
        median(tx_bytes) FILTER (WHERE quality = 'fine') AS exact_bytes
    FROM metrics.task_iteration_traffic
    WHERE task = (SELECT task FROM chosen)
    GROUP BY ALL
),
outside AS (                   -- tasks that ended before the first counters
    SELECT cluster, task, concat('the log ended ', date_diff('day', end_utc, c.start_utc), ' days before the counters') AS reason
    FROM metrics.task_summary
    CROSS JOIN (SELECT min(hour_utc) AS start_utc FROM metrics.port_hour) AS c
    WHERE end_utc < c.start_utc
)
SELECT t.pod, t.hca, i.iterations, CASE WHEN t.source = 'log' THEN i.tx_bytes ELSE t.tx_bytes END AS tx_bytes,
    CASE WHEN t.source = 'log' THEN i.tasks_on_nic ELSE t.tasks_on_nic END AS tasks_on_nic,
    e.expected_nominal_bytes AS nominal_bytes, e.expected_implemented_bytes AS implemented_bytes,
    round(i.exact_bytes / e.expected_nominal_bytes, 3) AS over_nominal,
    round(i.exact_bytes / e.expected_implemented_bytes, 3) AS over_implemented, e.implemented_rule AS rule, t.status,
    coalesce(
        CASE WHEN t.source <> 'log' AND t.tx_bytes IS NULL THEN 'no counters of these ports are loaded for the time of the task' END,
        CASE WHEN t.source <> 'log' THEN 'no log says what the task should send' END,
        e.reason, o.reason
    ) AS reason,
    t.source, t.rx_bytes, t.observed_seconds, t.server, t.task, t.cluster
FROM metrics.task_traffic AS t
LEFT JOIN iterations AS i USING (cluster, task, pod, hca)
LEFT JOIN metrics.task_expected_bytes AS e USING (cluster, task)
LEFT JOIN outside AS o USING (cluster, task)
WHERE t.task = (SELECT task FROM chosen)
ORDER BY t.cluster, t.pod, t.hca

/* ---
about: Bytes that each NIC of a training task sends per iteration, beside the expected bytes, nominal and as implemented by the framework. Where several tasks use the NIC (tasks_on_nic), the bytes are the sum over all of them.
question: Who trains together, over which ports, how much?
aliases: [task-traffic]
params:
  task: VARCHAR = null the task's folder; default the latest with traffic
answer: [hca, status, tx_bytes, nominal_bytes, implemented_bytes, over_nominal, pod]
unknown:
  tx_bytes: SELECT max(reason) FROM answer WHERE tx_bytes IS NULL AND nominal_bytes IS NOT NULL
  nominal_bytes: SELECT max(reason) FROM answer WHERE nominal_bytes IS NULL
  implemented_bytes: SELECT max(reason) FROM answer WHERE implemented_bytes IS NULL
notes:
  tx_bytes: median over the iterations within loaded hours, without gaps between polls
  nominal_bytes: bytes that a NIC should send per iteration; implemented_bytes as the framework does it
  over_nominal: tx_bytes over the bytes that the task should send per iteration
--- */
WITH chosen AS (
    SELECT coalesce($task, max(task) FILTER (WHERE status <> 'no_overlap'), max(task)) AS task FROM metrics.task_traffic
),
outside AS (                   -- tasks that ended before the first counters
    SELECT cluster, task, concat('the log ended ', date_diff('day', end_utc, c.start_utc), ' days before the counters') AS reason
    FROM metrics.task_summary
    CROSS JOIN (SELECT min(hour_utc) AS start_utc FROM metrics.port_hour) AS c
    WHERE end_utc < c.start_utc
)
SELECT i.pod, i.hca, count(*) FILTER (WHERE i.quality = 'fine') AS iterations,
    median(i.tx_bytes) FILTER (WHERE i.quality = 'fine')::BIGINT AS tx_bytes,
    max(i.tasks_on_nic) FILTER (WHERE i.quality = 'fine') AS tasks_on_nic,
    max(e.expected_nominal_bytes) AS nominal_bytes,
    max(e.expected_implemented_bytes) AS implemented_bytes,
    round(median(i.tx_bytes) FILTER (WHERE i.quality = 'fine') / max(e.expected_nominal_bytes), 3) AS over_nominal,
    round(median(i.tx_bytes) FILTER (WHERE i.quality = 'fine') / max(e.expected_implemented_bytes), 3)
        AS over_implemented,
    max(e.implemented_rule) AS rule, max(i.status) AS status, coalesce(max(e.reason), max(o.reason)) AS reason, i.task, i.cluster
FROM metrics.task_iteration_traffic AS i
JOIN metrics.task_expected_bytes AS e USING (cluster, task)
LEFT JOIN outside AS o USING (cluster, task)
WHERE i.task = (SELECT task FROM chosen)
GROUP BY i.cluster, i.task, i.pod, i.hca
ORDER BY i.cluster, i.pod, i.hca

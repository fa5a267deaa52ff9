/* ---
about: Bytes that each NIC of a training task sends per iteration, beside the expected bytes, nominal and as implemented by the framework. Where several tasks use the NIC (tasks_on_nic), the bytes are the sum over all of them.
question: Who trains together, over which ports, how much?
aliases: [task-traffic]
params:
  task: VARCHAR = null the task's folder; default the latest with traffic
answer: [pod, hca, status, tx_bytes, over_nominal]
unknown:
  tx_bytes: SELECT 'the log ended ' || date_diff('day', max(end_utc), (SELECT min(hour_utc) FROM metrics.port_hour)) || ' days before the counters' FROM metrics.task_summary HAVING max(end_utc) < (SELECT min(hour_utc) FROM metrics.port_hour)
notes:
  over_nominal: tx_bytes over the bytes that the task should send per iteration
--- */
WITH chosen AS (
    SELECT coalesce($task, max(task) FILTER (WHERE status <> 'no_overlap'), max(task)) AS task FROM metrics.task_traffic
)
SELECT i.pod, i.hca, count(*) FILTER (WHERE i.quality = 'fine') AS iterations,
    median(i.tx_bytes) FILTER (WHERE i.quality = 'fine')::BIGINT AS tx_bytes,
    max(i.tasks_on_nic) FILTER (WHERE i.quality = 'fine') AS tasks_on_nic,
    max(e.expected_nominal_bytes) AS nominal_bytes,
    max(e.expected_implemented_bytes) AS implemented_bytes,
    round(median(i.tx_bytes) FILTER (WHERE i.quality = 'fine') / max(e.expected_nominal_bytes), 3) AS over_nominal,
    round(median(i.tx_bytes) FILTER (WHERE i.quality = 'fine') / max(e.expected_implemented_bytes), 3)
        AS over_implemented,
    max(e.implemented_rule) AS rule, max(i.status) AS status, max(e.reason) AS reason, i.task, i.cluster
FROM metrics.task_iteration_traffic AS i
JOIN metrics.task_expected_bytes AS e USING (cluster, task)
WHERE i.task = (SELECT task FROM chosen)
GROUP BY i.cluster, i.task, i.pod, i.hca
ORDER BY i.cluster, i.pod, i.hca

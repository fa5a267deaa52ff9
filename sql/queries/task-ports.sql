/* ---
about: Switch ports that carried a training task, with the bytes of its NICs in observed iterations.
question: Who trains together, over which ports, how much?
params:
  task: VARCHAR = null the task's folder; default the latest with traffic
answer: [server, hca, switch, port, tx_bytes, rx_bytes, status]
unknown:
  tx_bytes: SELECT 'the log ended ' || date_diff('day', max(end_utc), (SELECT min(hour_utc) FROM metrics.port_hour)) || ' days before the counters' FROM metrics.task_summary HAVING max(end_utc) < (SELECT min(hour_utc) FROM metrics.port_hour)
--- */
WITH chosen AS (
    SELECT coalesce($task, max(task) FILTER (WHERE status <> 'no_overlap'), max(task)) AS task FROM metrics.task_traffic
)
SELECT t.server, t.hca, t.switch, t.port, t.tx_bytes, t.rx_bytes, t.status, p.first_rank, p.evidence AS rank_evidence,
    n.evidence AS nic_evidence, t.gap_seconds, t.pod, t.task, t.cluster
FROM metrics.task_traffic AS t
JOIN topology.task_pods AS p USING (cluster, task, pod)
JOIN topology.task_ports AS n USING (cluster, task, pod, hca)
WHERE t.task = (SELECT task FROM chosen)
ORDER BY t.cluster, p.first_rank NULLS LAST, t.pod, n.hca_index

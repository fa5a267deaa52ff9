/* ---
about: 'Bytes that the NICs of each training task sent in observed iterations, beside the bytes expected in them.'
--- */
SELECT
    task,
    count(*) AS nics,
    count(tx_bytes) AS nics_seen,
    sum(tx_bytes)::BIGINT AS tx_bytes,
    (sum(expected_nominal_bytes) FILTER (WHERE tx_bytes IS NOT NULL))::BIGINT AS expected_nominal_bytes,
    (sum(expected_implemented_bytes) FILTER (WHERE tx_bytes IS NOT NULL))::BIGINT AS expected_implemented_bytes,
    max(observed_iterations) AS observed_iterations,
    max(tasks_on_nic) FILTER (WHERE tx_bytes IS NOT NULL) AS tasks_on_nic,
    string_agg(DISTINCT server, ' ' ORDER BY server) AS servers,
    cluster,
    row_number() OVER (ORDER BY sum(tx_bytes) DESC NULLS LAST, cluster, task) AS place
FROM metrics.task_traffic
GROUP BY cluster, task
ORDER BY place

/* ---
about: What each NIC of a task sent while it ran, and what it should have sent.
params:
  cluster: VARCHAR the cluster
  task: VARCHAR the task
--- */
SELECT
    server,
    hca,
    switch,
    port,
    rx_bytes,
    tx_bytes,
    expected_nominal_bytes,
    expected_implemented_bytes,
    observed_iterations,
    iterations,
    status,
    tasks_on_nic,
    round(gap_seconds) AS gap_seconds
FROM metrics.task_traffic
WHERE cluster = $cluster AND task = $task
ORDER BY length(server), server, hca

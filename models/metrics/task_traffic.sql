/* ---
about: Bytes received and sent by each NIC of a training task in its observed iterations, beside the bytes expected in them.
grain: [cluster, task, pod, hca]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  hca: VARCHAR the NIC
  server: VARCHAR server of the pod
  switch: VARCHAR the leaf that the NIC is plugged into
  port: VARCHAR the leaf's port
  rx_bytes: BIGINT [B] bytes that the NIC received in observed iterations; NULL where none was observed
  tx_bytes: BIGINT [B] bytes that the NIC sent in observed iterations
  expected_nominal_bytes: BIGINT [B] nominal expected bytes in each direction, in the observed part of these iterations; in all iterations where none was observed
  expected_implemented_bytes: BIGINT [B] expected bytes as implemented by the framework, over the same iterations
  iterations: BIGINT [1] iterations of the task
  observed_iterations: BIGINT [1] iterations of which at least a part was observed
  status: VARCHAR ok, shared (another task uses the NIC in some iterations), no_overlap (no traffic of any iteration is loaded) or no_counters (no counters of this port)
  tasks_on_nic: BIGINT [1] largest number of tasks that use the NIC in an observed iteration, including this one; the bytes are the sum over all of them
  gap_seconds: DOUBLE [s] time from the task's first or last line to the nearest loaded traffic; NULL unless no_overlap
dimensions: [cluster, task, pod, hca, server, switch, port, status]
measures:
  rx_bytes, tx_bytes: sum, shown in GB
  expected_nominal_bytes, expected_implemented_bytes: sum, shown in GB
  iterations, observed_iterations: none
  tasks_on_nic: max
  gap_seconds: min
checks:
  - status in ('ok', 'shared', 'no_overlap', 'no_counters')
  - (rx_bytes is null) = (status in ('no_overlap', 'no_counters'))
  - (status = 'shared') = (tasks_on_nic > 1)
  - (gap_seconds is not null) = (status = 'no_overlap') or gap_seconds is null
  - total(rx_bytes) = total(metrics.task_iteration_traffic.rx_bytes) by cluster, task
  - total(tx_bytes) = total(metrics.task_iteration_traffic.tx_bytes) by cluster, task
sources: docs/metrics/tasks.md
--- */
WITH polled AS (
    SELECT
        cluster,
        epoch_us(hour_utc) // 1000 + min(offset_ms) AS first_ms,
        epoch_us(hour_utc) // 1000 + max(offset_ms) AS last_ms
    FROM staging.switch_polls
    GROUP BY cluster, hour_utc
),

gaps AS (
    SELECT
        t.cluster,
        t.task,
        min(greatest(p.first_ms - epoch_us(t.end_utc) // 1000, epoch_us(t.start_utc) // 1000 - p.last_ms, 0)) AS gap_ms
    FROM metrics.task_summary AS t
    JOIN polled AS p ON p.cluster = t.cluster
    GROUP BY t.cluster, t.task
),

sums AS (
    SELECT
        cluster,
        task,
        pod,
        hca,
        sum(rx_bytes) AS rx_bytes,
        sum(tx_bytes) AS tx_bytes,
        sum(expected_nominal_bytes) AS all_nominal,
        sum(expected_implemented_bytes) AS all_implemented,
        sum(CAST(round(expected_nominal_bytes * observed_share) AS BIGINT)) FILTER (WHERE status IN ('ok', 'shared')) AS nominal,
        sum(CAST(round(expected_implemented_bytes * observed_share) AS BIGINT)) FILTER (WHERE status IN ('ok', 'shared')) AS implemented,
        count(*) AS iterations,
        count(*) FILTER (WHERE status IN ('ok', 'shared')) AS observed_iterations,
        count(*) FILTER (WHERE status = 'no_counters') AS unseen_iterations,
        max(tasks_on_nic) FILTER (WHERE status IN ('ok', 'shared')) AS tasks_on_nic
    FROM metrics.task_iteration_traffic
    GROUP BY cluster, task, pod, hca
),

states AS (
    SELECT
        p.cluster,
        p.task,
        p.pod,
        p.hca,
        p.server,
        p.switch,
        p.port,
        s.rx_bytes,
        s.tx_bytes,
        s.all_nominal,
        s.all_implemented,
        s.nominal,
        s.implemented,
        coalesce(s.iterations, 0) AS iterations,
        coalesce(s.observed_iterations, 0) AS observed_iterations,
        g.gap_ms,
        coalesce(s.tasks_on_nic, 1) AS tasks_on_nic,
        CASE
            WHEN s.observed_iterations > 0 AND s.tasks_on_nic > 1 THEN 'shared'
            WHEN s.observed_iterations > 0 THEN 'ok'
            WHEN s.unseen_iterations > 0 THEN 'no_counters'
            ELSE 'no_overlap'
        END AS status
    FROM topology.task_ports AS p
    LEFT JOIN sums AS s ON s.cluster = p.cluster AND s.task = p.task AND s.pod = p.pod AND s.hca = p.hca
    LEFT JOIN gaps AS g ON g.cluster = p.cluster AND g.task = p.task
)

SELECT
    cluster,
    task,
    pod,
    hca,
    server,
    switch,
    port,
    rx_bytes,
    tx_bytes,
    CASE WHEN observed_iterations > 0 THEN nominal ELSE all_nominal END AS expected_nominal_bytes,
    CASE WHEN observed_iterations > 0 THEN implemented ELSE all_implemented END AS expected_implemented_bytes,
    iterations,
    observed_iterations,
    status,
    tasks_on_nic,
    CASE WHEN status = 'no_overlap' THEN gap_ms / 1e3 END AS gap_seconds
FROM states

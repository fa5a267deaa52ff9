/* ---
about: Bytes received and sent by each NIC of a training task in its observed iterations, beside the bytes expected in them; of a task without a log, in its listed time or in the hour of its traffic.
grain: [cluster, task, pod, hca]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  hca: VARCHAR the NIC
  source: VARCHAR log, listed (tasks.csv) or inferred:traffic (a job of metrics.traffic_jobs)
  server: VARCHAR server of the pod
  switch: VARCHAR the leaf that the NIC is plugged into
  port: VARCHAR the leaf's port
  start_utc: TIMESTAMP start of the time in which the task used the NIC
  end_utc: TIMESTAMP end of this time
  rx_bytes: BIGINT [B] bytes that the NIC received in observed iterations, of a task without a log in all of its time that is loaded; NULL where none was observed
  tx_bytes: BIGINT [B] bytes that the NIC sent, likewise
  observed_seconds: DOUBLE [s] loaded part of the time of a task without a log; NULL for others
  expected_nominal_bytes: BIGINT [B] nominal expected bytes in each direction, in the observed part of these iterations; in all iterations where none was observed
  expected_implemented_bytes: BIGINT [B] expected bytes as implemented by the framework, over the same iterations
  iterations: BIGINT [1] iterations of the task
  observed_iterations: BIGINT [1] iterations of which at least a part was observed
  status: VARCHAR ok, shared (another task uses the NIC in some of the time), no_overlap (no traffic of any iteration is loaded) or no_counters (no counters of this port)
  tasks_on_nic: BIGINT [1] largest number of tasks that use the NIC in an observed iteration, including this one; the bytes are the sum over all of them
  gap_seconds: DOUBLE [s] time from the task's first or last line to the nearest loaded traffic; NULL unless no_overlap
dimensions: [cluster, task, pod, hca, server, switch, port, source, status]
measures:
  rx_bytes, tx_bytes: sum except over status, shown in GB    # the bytes of a shared NIC are there for each task
  expected_nominal_bytes, expected_implemented_bytes: sum, shown in GB
  iterations, observed_iterations: none
  tasks_on_nic: max
  observed_seconds: none
  gap_seconds: min
checks:
  - status in ('ok', 'shared', 'no_overlap', 'no_counters')
  - (rx_bytes is null) = (status in ('no_overlap', 'no_counters'))
  - (status = 'shared') = (tasks_on_nic > 1)
  - (gap_seconds is not null) = (status = 'no_overlap') or gap_seconds is null
  # tasks with a log have the bytes of their iterations
  - none: WITH own AS (
      SELECT cluster, task, sum(rx_bytes) AS rx_bytes, sum(tx_bytes) AS tx_bytes FROM this WHERE source = 'log' GROUP BY ALL),
      its AS (SELECT cluster, task, sum(rx_bytes) AS rx_bytes, sum(tx_bytes) AS tx_bytes FROM metrics.task_iteration_traffic GROUP BY ALL)
      SELECT cluster, task FROM own FULL JOIN its USING (cluster, task)
      WHERE own.rx_bytes IS DISTINCT FROM its.rx_bytes OR own.tx_bytes IS DISTINCT FROM its.tx_bytes
  # jobs found in the traffic have the bytes of their servers
  - none: WITH own AS (
      SELECT cluster, task, sum(rx_bytes) AS rx_bytes, sum(tx_bytes) AS tx_bytes FROM this WHERE source = 'inferred:traffic' GROUP BY ALL),
      its AS (SELECT g.cluster, concat('traffic-', strftime(g.hour_utc, '%Y-%m-%dT%H'), '-', g.group_id) AS task, sum(h.rx_bytes) AS rx_bytes, sum(h.tx_bytes) AS tx_bytes
      FROM metrics.traffic_groups AS g JOIN metrics.server_hour AS h USING (cluster, server, hour_utc) GROUP BY ALL)
      SELECT cluster, task FROM own FULL JOIN its USING (cluster, task)
      WHERE own.rx_bytes IS DISTINCT FROM its.rx_bytes OR own.tx_bytes IS DISTINCT FROM its.tx_bytes
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
    JOIN polled AS p USING (cluster)  -- filter
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

spans AS (                     -- tasks without a log, with their time on each port
    SELECT p.cluster, p.task, p.pod, p.hca, p.switch, p.port, t.source, t.start_utc, t.end_utc
    FROM topology.task_ports AS p
    JOIN topology.task_pods AS t USING (cluster, task, pod)  -- whole
    WHERE t.source <> 'log'
),

hours AS (                     -- loaded hours that this time reaches into
    SELECT
        s.*,
        h.hour_utc,
        h.in_bytes,
        h.out_bytes,
        greatest(s.start_utc, h.hour_utc) AS from_utc,
        least(s.end_utc, h.hour_utc + INTERVAL '1 hour') AS until_utc
    FROM spans AS s
    JOIN metrics.port_hour AS h USING (cluster, switch, port)  -- check
    WHERE h.hour_utc < s.end_utc AND h.hour_utc + INTERVAL '1 hour' > s.start_utc
),

parts AS (                     -- of other hours, seconds at the edges count in proportion
    SELECT
        h.cluster,
        h.task,
        h.pod,
        h.hca,
        s.in_bytes,
        s.out_bytes,
        epoch_ms(least(h.until_utc, s.second_utc + INTERVAL '1 second')) - epoch_ms(greatest(h.from_utc, s.second_utc)) AS inside_ms
    FROM hours AS h
    JOIN metrics.port_second AS s USING (cluster, switch, port, hour_utc)  -- filter
    WHERE
        h.until_utc - h.from_utc < INTERVAL '1 hour'
        AND s.second_utc > h.from_utc - INTERVAL '1 second'
        AND s.second_utc < h.until_utc
),

moved AS (
    SELECT cluster, task, pod, hca, sum(out_bytes) AS rx_bytes, sum(in_bytes) AS tx_bytes
    FROM hours
    WHERE until_utc - from_utc = INTERVAL '1 hour'
    GROUP BY ALL
    UNION ALL
    SELECT cluster, task, pod, hca, sum(out_bytes * inside_ms) // 1000 AS rx_bytes, sum(in_bytes * inside_ms) // 1000 AS tx_bytes
    FROM parts
    GROUP BY ALL
),

listed_bytes AS (
    SELECT cluster, task, pod, hca, sum(rx_bytes) AS rx_bytes, sum(tx_bytes) AS tx_bytes
    FROM moved
    GROUP BY ALL
),

listed_times AS (
    SELECT cluster, task, pod, hca, sum(epoch_ms(until_utc) - epoch_ms(from_utc)) AS observed_ms
    FROM hours
    GROUP BY ALL
),

times AS (                     -- time in which each task that is known used a port; a job of the traffic may be any of them
    SELECT s.cluster, s.task, s.switch, s.port, s.start_utc, s.end_utc
    FROM spans AS s
    WHERE s.source = 'listed'
    UNION ALL
    SELECT p.cluster, p.task, p.switch, p.port, t.start_utc, t.end_utc
    FROM topology.task_ports AS p
    JOIN metrics.task_summary AS t USING (cluster, task)  -- filter, count
    WHERE t.source = 'log'
),

others AS (
    SELECT s.cluster, s.task, s.pod, s.hca, count(DISTINCT o.task) AS tasks
    FROM spans AS s
    JOIN times AS o USING (cluster, switch, port)  -- filter, count
    WHERE s.source = 'listed' AND o.task <> s.task AND o.start_utc < s.end_utc AND o.end_utc > s.start_utc
    GROUP BY s.cluster, s.task, s.pod, s.hca
),

without_log AS (
    SELECT
        s.cluster,
        s.task,
        s.pod,
        s.hca,
        s.source,
        s.start_utc,
        s.end_utc,
        CASE WHEN t.observed_ms IS NOT NULL THEN coalesce(b.rx_bytes, 0) END AS rx_bytes,
        CASE WHEN t.observed_ms IS NOT NULL THEN coalesce(b.tx_bytes, 0) END AS tx_bytes,
        t.observed_ms / 1e3 AS observed_seconds,
        1 + coalesce(o.tasks, 0) AS tasks_on_nic
    FROM spans AS s
    LEFT JOIN listed_times AS t USING (cluster, task, pod, hca)  -- once
    LEFT JOIN listed_bytes AS b USING (cluster, task, pod, hca)  -- once
    LEFT JOIN others AS o USING (cluster, task, pod, hca)  -- once
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
        coalesce(w.source, 'log') AS source,
        coalesce(w.start_utc, t.start_utc) AS start_utc,
        coalesce(w.end_utc, t.end_utc) AS end_utc,
        coalesce(w.rx_bytes, s.rx_bytes) AS rx_bytes,
        coalesce(w.tx_bytes, s.tx_bytes) AS tx_bytes,
        w.observed_seconds,
        s.all_nominal,
        s.all_implemented,
        s.nominal,
        s.implemented,
        coalesce(s.iterations, 0) AS iterations,
        coalesce(s.observed_iterations, 0) AS observed_iterations,
        g.gap_ms,
        CASE WHEN w.rx_bytes IS NOT NULL THEN w.tasks_on_nic ELSE coalesce(s.tasks_on_nic, 1) END AS tasks_on_nic,
        CASE
            WHEN w.rx_bytes IS NOT NULL AND w.tasks_on_nic > 1 THEN 'shared'
            WHEN w.rx_bytes IS NOT NULL THEN 'ok'
            WHEN w.source IS NOT NULL AND g.gap_ms = 0 THEN 'no_counters'
            WHEN s.observed_iterations > 0 AND s.tasks_on_nic > 1 THEN 'shared'
            WHEN s.observed_iterations > 0 THEN 'ok'
            WHEN s.unseen_iterations > 0 THEN 'no_counters'
            ELSE 'no_overlap'
        END AS status
    FROM topology.task_ports AS p
    LEFT JOIN without_log AS w USING (cluster, task, pod, hca)  -- check
    LEFT JOIN metrics.task_summary AS t USING (cluster, task)  -- once
    LEFT JOIN sums AS s USING (cluster, task, pod, hca)  -- check
    LEFT JOIN gaps AS g USING (cluster, task)  -- once
)

SELECT
    cluster,
    task,
    pod,
    hca,
    source,
    server,
    switch,
    port,
    start_utc,
    end_utc,
    rx_bytes,
    tx_bytes,
    observed_seconds,
    CASE WHEN observed_iterations > 0 THEN nominal ELSE all_nominal END AS expected_nominal_bytes,
    CASE WHEN observed_iterations > 0 THEN implemented ELSE all_implemented END AS expected_implemented_bytes,
    iterations,
    observed_iterations,
    status,
    tasks_on_nic,
    CASE WHEN status = 'no_overlap' THEN gap_ms / 1e3 END AS gap_seconds
FROM states

/* ---
about: Bytes received and sent by each NIC of a training task in each iteration, beside the expected bytes. The status marks NICs and iterations without observation.
grain: [cluster, task, iteration, pod, hca]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  iteration: BIGINT [1] number of the iteration
  pod: VARCHAR the pod
  hca: VARCHAR the NIC
  start_utc: TIMESTAMP start of the iteration; where one line covers several iterations, start of the first
  end_utc: TIMESTAMP end of the iteration
  rx_bytes: BIGINT [B] bytes that the NIC received in the iteration; NULL unless observed
  tx_bytes: BIGINT [B] bytes that the NIC sent in the iteration; NULL unless observed
  expected_nominal_bytes: BIGINT [B] nominal expected bytes, in each direction
  expected_implemented_bytes: BIGINT [B] expected bytes as implemented by the framework, in each direction
  status: VARCHAR ok, shared (another task uses the NIC at that time), no_overlap (no traffic of that time is loaded) or no_counters (no counters of that port)
  tasks_on_nic: BIGINT [1] tasks that use the NIC at that time, including this one; the bytes are the sum over all of them
  observed_share: DOUBLE [1] share of the iteration for which counters are loaded
  quality: VARCHAR quality of the worst second in the iteration, fine, coarse or gap; NULL where no byte moved
  gap_seconds: DOUBLE [s] time from the iteration to the nearest loaded traffic; NULL unless no_overlap
time: end_utc
dimensions: [cluster, task, iteration, pod, hca, status, quality]
measures:
  rx_bytes, tx_bytes: sum except over status, shown in GB    # the bytes of a shared NIC are there for each task
  expected_nominal_bytes, expected_implemented_bytes: sum, shown in GB
  tasks_on_nic: max
  observed_share: none, shown in %                           # iterations differ in length
  gap_seconds: min
checks:
  - status in ('ok', 'shared', 'no_overlap', 'no_counters')
  - (rx_bytes is null) = (status in ('no_overlap', 'no_counters'))
  - tasks_on_nic >= 1 and (status <> 'shared' or tasks_on_nic > 1)
  - observed_share between 0 and 1
sources: docs/metrics/tasks.md
--- */
-- Seconds at the edges of an iteration count in proportion. Edges lie in quiet time, after an iteration's exchange.
WITH iterations AS (
    SELECT
        cluster,
        task,
        iteration,
        iterations_covered,
        start_utc,
        end_utc,
        epoch_us(start_utc) // 1000 AS start_ms,
        epoch_us(end_utc) // 1000 AS end_ms
    FROM metrics.task_iterations
    WHERE start_utc IS NOT NULL AND end_utc > start_utc
),

windows AS (                   -- observed time of each switch: from the start of an hour to its last poll
    SELECT
        cluster,
        switch,
        hour_utc,
        epoch_us(hour_utc) // 1000 AS start_ms,
        epoch_us(hour_utc) // 1000 + CASE WHEN max(offset_ms) > 3595000 THEN 3600000 ELSE max(offset_ms) END AS end_ms
    FROM staging.switch_polls
    GROUP BY cluster, switch, hour_utc
),

polled AS (                    -- first and last poll of each hour, over all switches
    SELECT
        cluster,
        hour_utc,
        epoch_us(hour_utc) // 1000 + min(offset_ms) AS first_ms,
        epoch_us(hour_utc) // 1000 + max(offset_ms) AS last_ms
    FROM staging.switch_polls
    GROUP BY cluster, hour_utc
),

distances AS (                 -- time from each iteration to the nearest traffic of its cluster
    SELECT i.cluster, i.task, i.iteration, min(greatest(p.first_ms - i.end_ms, i.start_ms - p.last_ms, 0)) AS gap_ms
    FROM iterations AS i
    JOIN polled AS p ON p.cluster = i.cluster
    GROUP BY i.cluster, i.task, i.iteration
),

ports AS (
    SELECT cluster, task, pod, hca, server, switch, port
    FROM topology.task_ports
),

counted AS (                   -- observed time of each port of a task: its switch was observed, and the port has counters in that hour
    SELECT DISTINCT p.cluster, p.task, p.switch, p.port, w.start_ms, w.end_ms
    FROM ports AS p
    JOIN metrics.port_hour AS h ON h.cluster = p.cluster AND h.switch = p.switch AND h.port = p.port
    JOIN windows AS w ON w.cluster = h.cluster AND w.switch = h.switch AND w.hour_utc = h.hour_utc
),

observed AS (
    SELECT
        i.cluster,
        i.task,
        i.iteration,
        w.switch,
        w.port,
        sum(least(i.end_ms, w.end_ms) - greatest(i.start_ms, w.start_ms)) AS observed_ms
    FROM iterations AS i
    JOIN counted AS w ON w.cluster = i.cluster AND w.task = i.task AND w.start_ms < i.end_ms AND w.end_ms > i.start_ms
    GROUP BY i.cluster, i.task, i.iteration, w.switch, w.port
),

pieces AS (                    -- one row per iteration with traffic and second that it overlaps
    SELECT cluster, task, iteration, start_ms, end_ms, unnest(range(start_ms // 1000, (end_ms - 1) // 1000 + 1)) AS second
    FROM iterations AS i
    WHERE EXISTS (SELECT 1 FROM observed AS o WHERE o.cluster = i.cluster AND o.task = i.task AND o.iteration = i.iteration)
),

cut AS (
    SELECT
        cluster,
        task,
        iteration,
        make_timestamp(second * 1000000) AS second_utc,
        least(end_ms, second * 1000 + 1000) - greatest(start_ms, second * 1000) AS inside_ms
    FROM pieces
),

moved AS (
    SELECT
        c.cluster,
        c.task,
        c.iteration,
        p.pod,
        p.hca,
        sum(s.out_bytes * c.inside_ms) // 1000 AS rx_bytes,
        sum(s.in_bytes * c.inside_ms) // 1000 AS tx_bytes,
        max(CASE s.quality WHEN 'gap' THEN 3 WHEN 'coarse' THEN 2 ELSE 1 END) AS worst
    FROM ports AS p
    JOIN metrics.port_second AS s ON s.cluster = p.cluster AND s.switch = p.switch AND s.port = p.port
    JOIN cut AS c ON c.cluster = p.cluster AND c.task = p.task AND c.second_utc = s.second_utc
    GROUP BY c.cluster, c.task, c.iteration, p.pod, p.hca
),

spans AS (                     -- time in which each task used its NICs
    SELECT p.cluster, p.task, p.server, p.hca, s.start_utc, s.end_utc
    FROM ports AS p
    JOIN metrics.task_summary AS s ON s.cluster = p.cluster AND s.task = p.task
),

shared AS (
    SELECT i.cluster, i.task, i.iteration, p.pod, p.hca, count(DISTINCT o.task) AS others
    FROM ports AS p
    JOIN spans AS o ON o.cluster = p.cluster AND o.server = p.server AND o.hca = p.hca AND o.task <> p.task
    JOIN iterations AS i
        ON i.cluster = p.cluster AND i.task = p.task AND i.start_utc < o.end_utc AND i.end_utc > o.start_utc
    GROUP BY i.cluster, i.task, i.iteration, p.pod, p.hca
),

states AS (
    SELECT
        i.cluster,
        i.task,
        i.iteration,
        i.iterations_covered,
        i.start_utc,
        i.end_utc,
        i.end_ms - i.start_ms AS length_ms,
        p.pod,
        p.hca,
        coalesce(o.observed_ms, 0) AS observed_ms,
        d.gap_ms,
        1 + coalesce(h.others, 0) AS tasks_on_nic,
        CASE
            WHEN o.observed_ms IS NOT NULL AND h.hca IS NOT NULL THEN 'shared'
            WHEN o.observed_ms IS NOT NULL THEN 'ok'
            WHEN coalesce(d.gap_ms, 1) > 0 THEN 'no_overlap'
            ELSE 'no_counters'
        END AS status
    FROM iterations AS i
    JOIN ports AS p ON p.cluster = i.cluster AND p.task = i.task
    LEFT JOIN observed AS o
        ON o.cluster = i.cluster AND o.task = i.task AND o.iteration = i.iteration AND o.switch = p.switch AND o.port = p.port
    LEFT JOIN distances AS d ON d.cluster = i.cluster AND d.task = i.task AND d.iteration = i.iteration
    LEFT JOIN shared AS h
        ON h.cluster = i.cluster AND h.task = i.task AND h.iteration = i.iteration AND h.pod = p.pod AND h.hca = p.hca
)

SELECT
    s.cluster,
    s.task,
    s.iteration,
    s.pod,
    s.hca,
    s.start_utc,
    s.end_utc,
    CASE WHEN s.status IN ('ok', 'shared') THEN coalesce(m.rx_bytes, 0) END AS rx_bytes,
    CASE WHEN s.status IN ('ok', 'shared') THEN coalesce(m.tx_bytes, 0) END AS tx_bytes,
    e.expected_nominal_bytes * s.iterations_covered AS expected_nominal_bytes,
    e.expected_implemented_bytes * s.iterations_covered AS expected_implemented_bytes,
    s.status,
    s.tasks_on_nic,
    least(s.observed_ms, s.length_ms) / s.length_ms AS observed_share,
    CASE m.worst WHEN 3 THEN 'gap' WHEN 2 THEN 'coarse' WHEN 1 THEN 'fine' END AS quality,
    CASE WHEN s.status = 'no_overlap' THEN s.gap_ms / 1e3 END AS gap_seconds
FROM states AS s
LEFT JOIN metrics.task_expected_bytes AS e ON e.cluster = s.cluster AND e.task = s.task
LEFT JOIN moved AS m
    ON m.cluster = s.cluster AND m.task = s.task AND m.iteration = s.iteration AND m.pod = s.pod AND m.hca = s.hca

/* ---
about: Bytes received and sent by each NIC of a training task in each iteration, beside the expected bytes. The status marks NICs and iterations without observation.
grain: [cluster, task, iteration, pod, hca]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  iteration: BIGINT [1] number of the iteration; of the last one where a line covers several
  pod: VARCHAR the pod
  hca: VARCHAR the NIC
  start_utc: TIMESTAMP start of the iteration; where one line covers several iterations, start of the first
  end_utc: TIMESTAMP end of the iteration
  rx_bytes: BIGINT [B] bytes that the NIC received in the observed part of the iteration (observed_share), as its port's out bytes; NULL unless observed
  tx_bytes: BIGINT [B] bytes that the NIC sent, likewise
  expected_nominal_bytes: BIGINT [B] bytes expected of one NIC in the whole iteration in each direction, by the textbook algorithm (metrics.task_expected_bytes)
  expected_implemented_bytes: BIGINT [B] the same, as the framework implements it
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
        cluster, task, iteration, iterations_covered, start_utc, end_utc,
        epoch_us(start_utc) // 1000 AS start_ms,
        epoch_us(end_utc) // 1000 AS end_ms
    FROM metrics.task_iterations
    WHERE start_utc IS NOT NULL AND end_utc > start_utc
),

polled AS (                    -- observed time of each switch: from the start of an hour, which its first counters reach back to, to its last poll
    SELECT
        cluster, switch, hour_utc,
        epoch_us(hour_utc) // 1000 AS hour_ms,
        hour_ms + min(offset_ms) AS first_ms,
        hour_ms + max(offset_ms) AS last_ms,
        CASE WHEN max(offset_ms) > 3595000 THEN hour_ms + 3600000 ELSE last_ms END AS until_ms
    FROM staging.switch_polls
    GROUP BY cluster, switch, hour_utc
),

distances AS (                 -- time from each iteration to the nearest traffic of its cluster
    SELECT i.cluster, i.task, i.iteration, min(greatest(p.first_ms - i.end_ms, i.start_ms - p.last_ms, 0)) AS gap_ms
    FROM iterations AS i
    -- filter
    JOIN (SELECT cluster, min(first_ms) AS first_ms, max(last_ms) AS last_ms FROM polled GROUP BY cluster, hour_utc) AS p USING (cluster)
    GROUP BY ALL
),

counted AS (                   -- hours in which a port of a task was observed, and has counters
    SELECT DISTINCT t.cluster, t.task, t.switch, t.port, p.hour_ms, p.until_ms
    FROM topology.task_ports AS t
    JOIN metrics.port_hour AS h USING (cluster, switch, port)  -- filter
    JOIN polled AS p USING (cluster, switch, hour_utc)  -- whole
),

observed AS (
    SELECT
        i.cluster, i.task, i.iteration, c.switch, c.port,
        sum(least(i.end_ms, c.until_ms) - greatest(i.start_ms, c.hour_ms)) AS observed_ms
    FROM iterations AS i
    JOIN counted AS c USING (cluster, task)  -- once
    WHERE c.hour_ms < i.end_ms AND c.until_ms > i.start_ms
    GROUP BY ALL
),

inside AS (                    -- every second that an observed iteration overlaps
    SELECT
        i.cluster, i.task, i.iteration,
        make_timestamp_ms(1000 * s.second) AS second_utc,
        least(i.end_ms, 1000 * s.second + 1000) - greatest(i.start_ms, 1000 * s.second) AS inside_ms
    FROM iterations AS i
    SEMI JOIN observed AS o USING (cluster, task, iteration)  -- filter
    CROSS JOIN unnest(range(i.start_ms // 1000, (i.end_ms - 1) // 1000 + 1)) AS s (second)  -- grain
),

moved AS (
    SELECT
        i.cluster, i.task, i.iteration, p.pod, p.hca,
        sum(s.out_bytes * i.inside_ms) // 1000 AS rx_bytes,
        sum(s.in_bytes * i.inside_ms) // 1000 AS tx_bytes,
        max(CASE s.quality WHEN 'gap' THEN 3 WHEN 'coarse' THEN 2 ELSE 1 END) AS worst
    FROM topology.task_ports AS p
    JOIN metrics.port_second AS s USING (cluster, switch, port)  -- warning of task_ports, whole
    JOIN inside AS i USING (cluster, task, second_utc)  -- filter
    GROUP BY ALL
),

spans AS (                     -- time in which each task used its NICs
    SELECT p.cluster, p.server, p.hca, p.task AS other_task, s.start_utc AS other_start_utc, s.end_utc AS other_end_utc
    FROM topology.task_ports AS p
    JOIN metrics.task_summary AS s USING (cluster, task)  -- check of task_summary
),

shared AS (
    SELECT i.cluster, i.task, i.iteration, p.pod, p.hca, count(DISTINCT o.other_task) AS others
    FROM topology.task_ports AS p
    JOIN spans AS o USING (cluster, server, hca)  -- filter, count
    JOIN iterations AS i USING (cluster, task)  -- filter, count
    WHERE o.other_task <> p.task AND i.start_utc < o.other_end_utc AND i.end_utc > o.other_start_utc
    GROUP BY ALL
),

states AS (
    SELECT
        i.*,
        i.end_ms - i.start_ms AS length_ms,
        p.pod,
        p.hca,
        coalesce(o.observed_ms, 0) AS observed_ms,
        d.gap_ms,
        1 + coalesce(h.others, 0) AS tasks_on_nic,
        CASE
            WHEN o.observed_ms IS NOT NULL AND h.others IS NOT NULL THEN 'shared'
            WHEN o.observed_ms IS NOT NULL THEN 'ok'
            WHEN coalesce(d.gap_ms, 1) > 0 THEN 'no_overlap'
            ELSE 'no_counters'
        END AS status
    FROM iterations AS i
    JOIN topology.task_ports AS p USING (cluster, task)  -- warning of task_ports, grain
    LEFT JOIN observed AS o USING (cluster, task, iteration, switch, port)  -- once
    LEFT JOIN distances AS d USING (cluster, task, iteration)  -- once
    LEFT JOIN shared AS h USING (cluster, task, iteration, pod, hca)  -- once
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
LEFT JOIN metrics.task_expected_bytes AS e USING (cluster, task)  -- once
LEFT JOIN moved AS m USING (cluster, task, iteration, pod, hca)  -- once

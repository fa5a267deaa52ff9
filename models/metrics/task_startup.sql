/* ---
about: 'Startup times of each pod of a training task: pod start, first line, NCCL ready, first iteration done.'
grain: [cluster, task, pod]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  pod_start_utc: TIMESTAMP when the pod was started, by the list of pod starts
  first_line_utc: TIMESTAMP first line of its log with a time
  nccl_ready_utc: TIMESTAMP latest possible time at which its last communicator before the first iteration was complete
  nccl_ready_after_utc: TIMESTAMP earliest possible time of the same; NCCL's lines up to 2.25 have no time, so times of neighboring lines bound it
  train_start_utc: TIMESTAMP time of the line that says training starts
  first_iteration_utc: TIMESTAMP time of its first iteration line; NULL where it prints none
  last_line_utc: TIMESTAMP last line of its log with a time
time: pod_start_utc
checks:
  # log times have no zone: a difference of an hour means a clock in another zone
  - warn: first_line_utc between pod_start_utc and pod_start_utc + INTERVAL '1 hour' or first_line_utc is null or pod_start_utc is null
    says: "{task}, {pod}: the pod started at {pod_start_utc}, its log begins at {first_line_utc}: its clock may be in another zone"
sources: docs/metrics/tasks.md
--- */
WITH timed AS (
    SELECT cluster, task, pod, segment, time_utc
    FROM staging.log_events
    WHERE time_utc IS NOT NULL
),

ends AS (
    SELECT cluster, task, pod, min(time_utc) AS first_line_utc, max(time_utc) AS last_line_utc
    FROM timed
    GROUP BY cluster, task, pod
),

marks AS (
    SELECT
        cluster,
        task,
        pod,
        min(time_utc) FILTER (WHERE kind = 'train_start') AS train_start_utc,
        min(time_utc) FILTER (WHERE kind = 'iteration') AS first_iteration_utc,
        min(segment) FILTER (WHERE kind IN ('iteration', 'progress') AND step >= 1) AS first_iteration_segment
    FROM staging.log_events
    GROUP BY cluster, task, pod
),

complete AS (                  -- the last communicator that was complete before the first iteration
    SELECT c.cluster, c.task, c.pod, max(c.segment) AS segment
    FROM topology.task_communicators AS c
    LEFT JOIN marks AS m USING (cluster, task, pod)  -- once
    WHERE c.segment < coalesce(m.first_iteration_segment, c.segment + 1)
    GROUP BY c.cluster, c.task, c.pod
),

between_lines AS (
    SELECT
        c.cluster,
        c.task,
        c.pod,
        min(t.time_utc) FILTER (WHERE t.segment >= c.segment) AS nccl_ready_utc,
        max(t.time_utc) FILTER (WHERE t.segment <= c.segment) AS nccl_ready_after_utc
    FROM complete AS c
    JOIN timed AS t USING (cluster, task, pod)  -- filter
    GROUP BY c.cluster, c.task, c.pod
)

SELECT
    p.cluster,
    p.task,
    p.pod,
    p.start_utc AS pod_start_utc,
    e.first_line_utc,
    n.nccl_ready_utc,
    n.nccl_ready_after_utc,
    m.train_start_utc,
    m.first_iteration_utc,
    e.last_line_utc
FROM topology.task_pods AS p
LEFT JOIN ends AS e USING (cluster, task, pod)  -- once
LEFT JOIN marks AS m USING (cluster, task, pod)  -- once
LEFT JOIN between_lines AS n USING (cluster, task, pod)  -- once
WHERE p.source = 'log'

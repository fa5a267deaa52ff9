/* ---
about: 'Traffic pulses of a training task''s servers beside the iterations of its log, one row per pulse that began within an iteration.'
grain: [cluster, task, pod, hour_utc, pulse]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  server: VARCHAR server of the pod
  hour_utc: TIMESTAMP the hour
  pulse: INTEGER [1] number of the pulse in metrics.traffic_pulses
  iteration: BIGINT [1] logged iteration in which the pulse began
  start_utc: TIMESTAMP start of the pulse, as seen on the server's ports
  after_seconds: DOUBLE [s] time from the start of the iteration, by the log, to the start of the pulse
time: start_utc
dimensions: [cluster, task, pod, server, pulse, iteration]
measures:
  after_seconds: mean
checks:
  - after_seconds >= 0
sources: docs/metrics/periods.md
--- */
WITH iterations AS (           -- iterations with a line of their own, and with start and end
    SELECT cluster, task, iteration, start_utc, end_utc
    FROM metrics.task_iterations
    WHERE iterations_covered = 1 AND start_utc IS NOT NULL AND end_utc IS NOT NULL
),

within AS (
    SELECT
        p.cluster,
        p.task,
        p.pod,
        p.server,
        q.hour_utc,
        q.pulse,
        i.iteration,
        q.start_utc,
        (epoch_us(q.start_utc) - epoch_us(i.start_utc)) / 1e6 AS after_seconds,
        row_number() OVER (PARTITION BY p.cluster, p.task, p.pod, q.hour_utc, q.pulse ORDER BY i.start_utc DESC, i.iteration) AS place
    FROM topology.task_pods AS p
    JOIN iterations AS i USING (cluster, task)
    JOIN metrics.traffic_pulses AS q
        ON q.cluster = p.cluster AND q.server = p.server AND q.start_utc >= i.start_utc AND q.start_utc < i.end_utc
)

SELECT
    cluster,
    task,
    pod,
    server,
    hour_utc,
    pulse,
    iteration,
    start_utc,
    after_seconds
FROM within
WHERE place = 1

/* ---
about: 'Lag of each server of a training task: time from the first server''s line about an iteration to its own, the slowest server first.'
question: Who trains together, over which ports, how much?
params:
  task: VARCHAR = null the task's folder; default the latest where several pods print iterations
answer: [server, late_p50_ms, late_max_ms, share_last, iterations]
ranked: late_p50_ms desc
--- */
-- share_last: of the iterations, those in which this server was the last
WITH lines AS (
    SELECT cluster, task, pod, step, max(time_utc) AS time_utc
    FROM staging.log_events
    WHERE kind = 'iteration' AND time_utc IS NOT NULL
    GROUP BY ALL
),
late AS (
    SELECT cluster, task, pod, step,
        epoch_ms(time_utc) - min(epoch_ms(time_utc)) OVER step AS late_ms,
        rank() OVER (PARTITION BY cluster, task, step ORDER BY time_utc DESC) AS place,
        count(*) OVER step AS pods
    FROM lines
    WINDOW step AS (PARTITION BY cluster, task, step)
),
chosen AS (SELECT coalesce($task, (SELECT max(task) FROM late WHERE pods > 1)) AS task)
SELECT p.server, l.pod, median(l.late_ms) AS late_p50_ms, max(l.late_ms) AS late_max_ms,
    round(count(*) FILTER (WHERE l.place = 1) / count(*), 3) AS share_last, count(*) AS iterations,
    s.first_iteration_utc, l.task, l.cluster
FROM late AS l
JOIN topology.task_pods AS p USING (cluster, task, pod)
LEFT JOIN metrics.task_startup AS s USING (cluster, task, pod)
WHERE l.task = (SELECT task FROM chosen) AND l.pods > 1
GROUP BY ALL
ORDER BY late_p50_ms DESC, l.cluster, l.pod

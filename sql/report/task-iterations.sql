/* ---
about: 'Iteration times of each training task, as a cumulative distribution.'
--- */
SELECT
    t.task,
    count(*) AS iterations,
    round(quantile_cont(t.seconds, 0.5), 3) AS median_seconds,
    round(quantile_cont(t.seconds, 0.99), 3) AS p99_seconds,
    round(max(t.seconds), 3) AS longest_seconds,
    list_transform(quantile_disc(t.seconds, list_transform(range(101), LAMBDA p: p / 100)), LAMBDA s: round(s, 3)) AS seconds_by_percent,
    t.cluster,
    row_number() OVER (ORDER BY count(*) DESC, t.cluster, t.task) AS place
FROM metrics.task_iterations AS t
WHERE t.seconds > 0
GROUP BY t.cluster, t.task
ORDER BY place

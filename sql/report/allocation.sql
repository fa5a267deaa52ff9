/* ---
about: How many GPUs jobs held, as the mean of each day.
--- */
WITH days AS (                      -- a row a job and day that it ran in
    SELECT j.trace, j.cluster, j.num_gpus, j.start_utc, j.end_utc, unnest(
        generate_series(date_trunc('day', j.start_utc), j.end_utc, INTERVAL '1 day')) AS day_utc
    FROM metrics.jobs AS j
    WHERE j.num_gpus > 0 AND j.end_utc > j.start_utc
)
SELECT
    trace,
    cluster,
    day_utc,
    round(sum(num_gpus * date_diff('second', greatest(start_utc, day_utc), least(end_utc, day_utc + INTERVAL '1 day')))
        / 86400, 1) AS gpus
FROM days
GROUP BY trace, cluster, day_utc
ORDER BY trace, cluster, day_utc

/* ---
about: How many GPUs jobs held, as the mean of each day.
--- */
WITH days AS (                      -- a row a job and day that it ran in
    SELECT j.trace, j.cluster, j.num_gpus, j.start_utc, j.end_utc, unnest(
        generate_series(date_trunc('day', j.start_utc), j.end_utc, INTERVAL '1 day')) AS day_utc
    FROM metrics.jobs AS j
    WHERE j.num_gpus > 0 AND j.end_utc > j.start_utc
),
held AS (
    SELECT
        trace,
        cluster,
        day_utc,
        sum(num_gpus * date_diff('second', greatest(start_utc, day_utc), least(end_utc, day_utc + INTERVAL '1 day')))
            AS gpu_seconds
    FROM days
    GROUP BY trace, cluster, day_utc
)
SELECT
    trace,
    cluster,
    day_utc,
    round(gpu_seconds / 86400, 1) AS gpus,
    row_number() OVER (ORDER BY gpu_seconds DESC, trace, cluster, day_utc) AS place
FROM held
ORDER BY trace, cluster, day_utc

/* ---
about: Training tasks found in the logs.
--- */
WITH shown AS (
    SELECT
        task,
        model,
        trainer,
        world_size,
        gpu_model,
        iterations,
        round(iteration_p50_seconds, 3) AS iteration_p50_seconds,
        round(tokens_per_second) AS tokens_per_second,
        round(100 * mfu_6n, 1) AS mfu_6n_percent,
        restarts,
        start_utc,
        end_utc,
        cluster
    FROM metrics.task_summary
),
told AS (
    SELECT
        format('Training tasks with logs: {}', count(*)) AS title,
        'Set-up, speed, the share of the GPUs'' peak that each reached, and restarts.' AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY cluster, task

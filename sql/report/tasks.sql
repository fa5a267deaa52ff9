/* ---
about: Training tasks found in the logs.
--- */
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
ORDER BY cluster, task

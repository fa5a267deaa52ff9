/* ---
about: Percentiles of the run time of GPU jobs, by cluster.
--- */
SELECT
    trace,
    cluster,
    count(*) AS jobs,
    round(quantile_cont(run_seconds, 0.1)) AS p10_seconds,
    round(quantile_cont(run_seconds, 0.25)) AS p25_seconds,
    round(quantile_cont(run_seconds, 0.5)) AS median_seconds,
    round(quantile_cont(run_seconds, 0.75)) AS p75_seconds,
    round(quantile_cont(run_seconds, 0.9)) AS p90_seconds,
    row_number() OVER (ORDER BY quantile_cont(run_seconds, 0.5) DESC, trace, cluster) AS place
FROM metrics.jobs
WHERE num_gpus > 0 AND run_seconds > 0
GROUP BY trace, cluster
ORDER BY trace, cluster

/* ---
about: Percentiles of the run time of GPU jobs, by cluster.
--- */
WITH shown AS (
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
),
told AS (
    SELECT
        first(concat(
            'Half of the GPU jobs of ', trace, ' ', cluster, ' run longer than ',
            CASE
                WHEN median_seconds >= 172800 THEN format('{:.3g} d', median_seconds / 86400)
                WHEN median_seconds >= 3600 THEN format('{:.3g} h', median_seconds / 3600)
                WHEN median_seconds >= 60 THEN format('{:.3g} min', median_seconds / 60)
                ELSE format('{:.3g} s', median_seconds)
            END,
            ', the longest median'
        ) ORDER BY place) AS title,
        format('Run times of {:,} GPU jobs, a row for each cluster ({}).', sum(jobs)::BIGINT, count(*)) AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY trace, cluster

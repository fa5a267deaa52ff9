/* ---
about: 'GPUs in use as a share of the cluster: percentiles over all ten minutes.'
--- */
WITH shown AS (
    SELECT
        trace,
        cluster,
        count(*) AS slots,
        round(100 * quantile_cont(allocation_share, 0.5), 1) AS median_percent,
        round(100 * max(allocation_share), 1) AS most_percent,
        count(*) FILTER (WHERE allocation_share > 1) AS slots_above_100,
        list_transform(
            quantile_cont(allocation_share, list_transform(range(101), LAMBDA i: i / 100)), LAMBDA share: round(100 * share, 2)
        ) AS percents,
        row_number() OVER (ORDER BY quantile_cont(allocation_share, 0.5) DESC, trace, cluster) AS place
    FROM metrics.gpu_allocation
    WHERE allocation_share IS NOT NULL
    GROUP BY trace, cluster
),
told AS (
    SELECT
        first(format('Half of the time, at most {:g} % of the GPUs of {} {} are in use', median_percent, trace, cluster) ORDER BY place) AS title,
        concat(
            format('Means of {:,} slots of ten minutes; the fullest has {:g} % in use', sum(slots)::BIGINT, max(most_percent)),
            CASE WHEN sum(slots_above_100) > 0 THEN format(', {:,} have more than there is', sum(slots_above_100)::BIGINT) END, '.'
        ) AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY place

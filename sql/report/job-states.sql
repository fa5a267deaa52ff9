/* ---
about: 'End states of jobs: shares of GPU jobs and of their GPU time.'
--- */
WITH ended AS (
    SELECT
        trace,
        cluster,
        CASE outcome WHEN 'completed' THEN 'completed' WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'canceled' ELSE 'other' END AS outcome,
        count(*) AS jobs,
        sum(gpu_seconds) AS gpu_seconds
    FROM metrics.jobs
    WHERE num_gpus > 0 AND state IS NOT NULL
    GROUP BY ALL
),
shares AS (
    SELECT
        *,
        jobs / sum(jobs) OVER (PARTITION BY trace, cluster) AS job_share,
        gpu_seconds / nullif(sum(gpu_seconds) OVER (PARTITION BY trace, cluster), 0) AS gpu_time_share
    FROM ended
),
shown AS (
    SELECT
        trace,
        cluster,
        outcome,
        jobs,
        round(100 * job_share, 1) AS jobs_percent,
        round(100 * gpu_time_share, 1) AS gpu_time_percent,
        row_number() OVER (ORDER BY outcome <> 'completed' DESC, gpu_time_share DESC NULLS LAST, trace, cluster, outcome) AS place
    FROM shares
),
told AS (
    SELECT
        first(format('In {} {}, {:g} % of the GPU time goes to jobs that end as {}', trace, cluster, gpu_time_percent, outcome) ORDER BY place)
            AS title,
        format('{:,} GPU jobs; the shares of jobs are in the table.', sum(jobs)::BIGINT) AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY trace, cluster, list_position(['completed', 'failed', 'canceled', 'other'], outcome)

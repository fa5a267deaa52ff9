/* ---
about: 'GPUs requested per job: shares of GPU jobs and of their GPU time by size.'
--- */
WITH sized AS (
    SELECT
        trace,
        cluster,
        CASE
            WHEN num_gpus < 1 THEN 'part of 1'
            WHEN num_gpus = 1 THEN '1'
            WHEN num_gpus < 8 THEN '2-7'
            WHEN num_gpus < 64 THEN '8-63'
            ELSE '64 and more'
        END AS gpus,
        min(num_gpus) AS least,
        count(*) AS jobs,
        sum(gpu_seconds) AS gpu_seconds
    FROM metrics.jobs
    WHERE num_gpus > 0
    GROUP BY ALL
),
shares AS (
    SELECT
        *,
        jobs / sum(jobs) OVER (PARTITION BY trace, cluster) AS job_share,
        gpu_seconds / nullif(sum(gpu_seconds) OVER (PARTITION BY trace, cluster), 0) AS gpu_time_share
    FROM sized
),
shown AS (
    SELECT
        trace,
        cluster,
        gpus,
        jobs,
        round(100 * job_share, 1) AS jobs_percent,
        round(100 * gpu_time_share, 1) AS gpu_time_percent,
        row_number() OVER (ORDER BY least >= 64 DESC, gpu_time_share DESC NULLS LAST, trace, cluster, least) AS place
    FROM shares
),
told AS (
    SELECT
        first(format(
            'In {} {}, {:g} % of the jobs take {:g} % of the GPU time: those of {} GPUs', trace, cluster, jobs_percent, gpu_time_percent, gpus
        ) ORDER BY place) AS title,
        format('{:,} GPU jobs; the shares of jobs are in the table.', sum(jobs)::BIGINT) AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY trace, cluster, list_position(['part of 1', '1', '2-7', '8-63', '64 and more'], gpus)

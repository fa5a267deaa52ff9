/* ---
about: 'Job quantities with published figures: numbers, means, end states and sums of whole traces.'
grain: [quantity]
columns:
  quantity: VARCHAR name of the quantity, from general to specific, as seren/gpu/duration_up_to_64/job_percent
  value: DOUBLE our value, in the unit that the name ends with; days since 1970 for a day
measures:
  value: none
checks:
  - not null(value)
sources: docs/metrics/claims.md
--- */
WITH totals AS (               -- one list per row of job_totals
    SELECT
        concat(cluster, '/', kind, '/') AS prefix,
        unnest([
            { name: 'mean_duration_seconds', value: mean_duration_seconds },
            { name: 'median_duration_seconds', value: median_duration_seconds },
            { name: 'max_duration_seconds', value: max_duration_seconds },
            { name: 'mean_queue_seconds', value: mean_queue_seconds },
            { name: 'median_queue_seconds', value: median_queue_seconds },
            { name: 'mean_gpus', value: mean_gpus },
            { name: 'median_gpus', value: median_gpus },
            { name: 'max_gpus', value: max_gpus }
        ]) AS one
    FROM metrics.job_totals
),

counts AS (                    -- a kind without jobs counts 0 jobs
    SELECT
        cluster,
        unnest([
            { name: '/jobs', value: sum(jobs)::DOUBLE },
            { name: '/gpu/jobs', value: coalesce(sum(jobs) FILTER (WHERE kind = 'gpu'), 0)::DOUBLE },
            { name: '/cpu/jobs', value: coalesce(sum(jobs) FILTER (WHERE kind = 'cpu'), 0)::DOUBLE }
        ]) AS one
    FROM metrics.job_totals
    GROUP BY cluster
),

ends AS (                      -- as in cluster_summary: a job that neither completed nor was cancelled counts as failed
    SELECT
        cluster,
        kind,
        CASE WHEN outcome IN ('completed', 'cancelled') THEN outcome ELSE 'failed' END AS outcome,
        count(*) AS jobs,
        coalesce(sum(published_gpu_seconds), 0)::DOUBLE AS gpu_seconds
    FROM staging.job_sizes
    WHERE trace <> 'itp'
    GROUP BY cluster, kind, CASE WHEN outcome IN ('completed', 'cancelled') THEN outcome ELSE 'failed' END
),

ended AS (
    SELECT
        e.cluster,
        e.kind,
        e.outcome,
        e.gpu_seconds,
        e.jobs / t.jobs AS job_share,
        e.gpu_seconds / nullif(t.published_gpu_seconds, 0) AS gpu_time_share
    FROM ends AS e
    JOIN metrics.job_totals AS t USING (cluster, kind)
    WHERE e.cluster <> 'pai'   -- states of PAI are not end states
),

ended_lists AS (
    SELECT
        concat(cluster, '/', kind, '/', outcome, '/') AS prefix,
        unnest([
            { name: 'gpu_seconds', value: gpu_seconds },
            { name: 'job_share', value: job_share },
            { name: 'job_percent', value: 100 * job_share },
            { name: 'gpu_time_share', value: gpu_time_share },
            { name: 'gpu_time_percent', value: 100 * gpu_time_share }
        ]) AS one
    FROM ended
),

check_lists AS (
    SELECT
        concat(cluster, '/') AS prefix,
        unnest([
            { name: 'duration_is_run/job_percent', value: 100 * duration_is_run / nullif(jobs - without_end, 0) },
            { name: 'queue_is_wait/job_percent', value: 100 * queue_is_wait / nullif(jobs - without_end, 0) },
            { name: 'gpu_time_is_product/job_percent', value: 100 * gpu_time_is_product / nullif(jobs - without_end, 0) }
        ]) AS one
    FROM metrics.job_published_check
),

long_jobs AS (
    SELECT
        cluster,
        100 * (count(*) FILTER (WHERE duration_seconds > 86400)) / count(*) AS value
    FROM staging.job_sizes
    WHERE trace = 'acme' AND kind = 'gpu'
    GROUP BY cluster
),

acme AS (                      -- months in China's time zone, UTC+8
    SELECT
        count(DISTINCT cluster) AS clusters,
        count(DISTINCT state) AS states,
        count(DISTINCT concat(year(submit_utc + INTERVAL '8 hours'), '-', month(submit_utc + INTERVAL '8 hours'))) AS months
    FROM metrics.jobs
    WHERE trace = 'acme'
    GROUP BY trace
),

acme_lists AS (
    SELECT unnest([
        { name: 'acme/clusters', value: clusters::DOUBLE },
        { name: 'acme/states', value: states::DOUBLE },
        { name: 'acme/months', value: months::DOUBLE }
    ]) AS one
    FROM acme
    WHERE clusters = 2
),

itp AS (
    SELECT
        max(epoch_us(submit_utc) // 1000000 + duration_seconds) AS last_end,
        min(epoch_us(submit_utc) // 1000000) AS first_submit,
        count(*) AS jobs,
        count(DISTINCT cluster) AS clusters,
        sum(num_gpus * duration_seconds) AS gpu_seconds
    FROM staging.itp_jobs
    GROUP BY epoch_utc
),

itp_totals AS (
    SELECT unnest([
        { name: 'itp/jobs', value: jobs::DOUBLE },
        { name: 'itp/clusters', value: clusters::DOUBLE },
        { name: 'itp/gpu_hours', value: gpu_seconds / 3600 },
        { name: 'itp/first_day', value: (first_submit // 86400)::DOUBLE },
        { name: 'itp/last_day', value: (last_end // 86400 + 1)::DOUBLE },
        { name: 'itp/months', value: (last_end - first_submit) / (86400 * 30.4375e0) }
    ]) AS one
    FROM itp
),

named AS (
    SELECT concat(prefix, one.name) AS quantity, one.value
    FROM totals
    UNION ALL
    SELECT concat(cluster, one.name) AS quantity, one.value
    FROM counts
    UNION ALL
    SELECT concat(prefix, one.name) AS quantity, one.value
    FROM ended_lists
    UNION ALL
    SELECT concat(prefix, one.name) AS quantity, one.value
    FROM check_lists
    UNION ALL
    SELECT concat(cluster, '/gpu/over_1_day/job_percent') AS quantity, value
    FROM long_jobs
    UNION ALL
    SELECT one.name AS quantity, one.value
    FROM acme_lists
    UNION ALL
    SELECT one.name AS quantity, one.value
    FROM itp_totals
    UNION ALL
    SELECT
        CASE format
            WHEN 'itp.jobs' THEN 'itp/raw_files'
            WHEN 'itp.elasticflow_jobs' THEN 'itp/simulation_files'
            ELSE 'itp/testbed_files'
        END AS quantity,
        count(*)::DOUBLE AS value
    FROM raw.files
    WHERE format IN ('itp.jobs', 'itp.elasticflow_jobs', 'itp.testbed_jobs') AND status IN ('read', 'partial')
    GROUP BY format
)

SELECT quantity, value
FROM named
WHERE value IS NOT NULL

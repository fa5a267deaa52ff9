/* ---
about: GPU jobs of a trace in the Standard Workload Format 2.2, for simulators of schedulers. Write it with `--format text -o FILE.swf`.
question: How long do jobs run and wait?
params:
  trace: VARCHAR = 'itp' trace, as acme or itp
  job_cluster: VARCHAR = null only this cluster; default all, a partition each
--- */
WITH jobs AS (
    SELECT trace, cluster, user_id, job_type, CAST(ceil(num_gpus) AS BIGINT) AS num_gpus, queue_seconds, run_seconds, outcome,
        row_number() OVER (ORDER BY second, cluster, job_id) AS job, second - min(second) OVER () AS submit,
        min(submit_utc) OVER () AS start_utc
    FROM (SELECT *, coalesce(epoch_us(submit_utc) // 1000000, submit_seconds) AS second FROM metrics.jobs)
    WHERE trace = $trace AND ($job_cluster IS NULL OR cluster = $job_cluster) AND num_gpus > 0 AND second IS NOT NULL
), numbered AS (
    SELECT job, submit, trace, cluster, job_type, num_gpus, start_utc,
        CASE WHEN queue_seconds >= 0 THEN queue_seconds ELSE -1 END AS wait,
        coalesce(run_seconds, -1) AS run,
        CASE outcome WHEN 'completed' THEN 1 WHEN 'failed' THEN 0 WHEN 'cancelled' THEN 5 ELSE -1 END AS status,
        CASE WHEN user_id IS NULL THEN -1 ELSE dense_rank() OVER (ORDER BY user_id) END AS user_number,
        CASE WHEN job_type IS NULL THEN -1 ELSE dense_rank() OVER (ORDER BY job_type) END AS executable,
        dense_rank() OVER (ORDER BY cluster) AS part
    FROM jobs
), clusters AS (
    SELECT n.part, n.cluster, any_value(c.gpus ORDER BY c.gpus) AS gpus
    FROM numbered AS n
    LEFT JOIN reference.job_clusters AS c ON c.trace = n.trace AND c.cluster = n.cluster
    GROUP BY n.part, n.cluster
), left_out AS (
    SELECT count(*) AS jobs
    FROM metrics.jobs
    WHERE trace = $trace AND ($job_cluster IS NULL OR cluster = $job_cluster) AND (num_gpus IS NULL OR num_gpus = 0)
), header AS (
    SELECT 1 AS place, unnest(range(10)) AS number, unnest([
        'Version: 2.2', 'Computer: ' || string_agg(DISTINCT cluster, ', ' ORDER BY cluster) || ' of ' || max(trace),
        'MaxJobs: ' || count(*), 'MaxRecords: ' || count(*),
        'UnixStartTime: ' || epoch_us(min(start_utc)) // 1000000, 'TimeZoneString: Etc/UTC',
        'MaxProcs: ' || (SELECT sum(gpus) FROM clusters HAVING count(gpus) = count(*)),
        'Note: processors are GPUs; the largest job has ' || max(num_gpus),
        'Note: ' || (SELECT jobs FROM left_out) || ' jobs without GPUs are left out',
        'Note: run time is ' || CASE max(trace) WHEN 'itp' THEN 'the duration as published' ELSE 'end - start' END
    ]) AS text
    FROM numbered
    HAVING count(*) > 0
    UNION ALL
    SELECT 2 AS place, part AS number, 'Partition: ' || part || ' ' || cluster AS text FROM clusters
    UNION ALL
    SELECT DISTINCT 3 AS place, executable AS number, 'Note: executable ' || executable || ' is the type ' || job_type AS text
    FROM numbered
    WHERE job_type IS NOT NULL
), lines AS (
    SELECT place, number, '; ' || text AS line FROM header WHERE text IS NOT NULL
    UNION ALL
    SELECT 4 AS place, job AS number, concat_ws(
        ' ', job, submit, wait, run, num_gpus, -1, -1, num_gpus, -1, -1, status, user_number, -1, executable, -1, part, -1, -1
    ) AS line
    FROM numbered
)
SELECT line
FROM lines
ORDER BY place, number, line

/* ---
about: Servers of tasks without a log, one row a task, server and time, from a file `tasks.csv` or from jobs found in the traffic of an hour.
grain: [cluster, task, pod]
columns:
  cluster: VARCHAR the cluster's folder; unknown where neither the list nor the servers tell it
  task: VARCHAR name of the task; traffic-HOUR-n for job n of metrics.traffic_jobs
  pod: VARCHAR the server as listed, numbered where the task ran on it several times
  server: VARCHAR GPU-n, or the owner of ports in metrics.traffic_groups; NULL where no sheet has such a name or address
  start_utc: TIMESTAMP start
  end_utc: TIMESTAMP end; the end of the loaded traffic where it still ran
  first_rank: BIGINT [1] lowest rank on the server, as listed
  ranks: BIGINT [1] ranks on the server, as listed
  hcas: VARCHAR adapters that the task used, as listed; NULL for all of the server
  source: VARCHAR listed (tasks.csv) or inferred:traffic
  nearest: VARCHAR names of servers that resemble the listed one; NULL where the server is known
checks:
  - source in ('listed', 'inferred:traffic')
  - end_utc > start_utc
  - warn: not null(server)
    says: "{task}: no sheet has a server {pod}; names like it: {nearest}"
sources: docs/formats/tasks.md
--- */
WITH clusters AS (             -- the only cluster of the loaded files, for lists in a folder of their own
    SELECT CASE WHEN count(DISTINCT cluster) = 1 THEN min(cluster) END AS cluster FROM topology.servers
),

last_hours AS (
    SELECT cluster, max(hour_utc) + INTERVAL '1 hour' AS end_utc FROM staging.port_files GROUP BY cluster
),

names AS (                     -- names and addresses of each server, in small letters
    SELECT cluster, server, lower(server) AS name FROM topology.servers
    UNION
    SELECT cluster, server, lower(sysname) AS name FROM topology.servers WHERE sysname IS NOT NULL
    UNION
    SELECT cluster, server, host_ip AS name FROM topology.servers WHERE host_ip IS NOT NULL
    UNION
    SELECT cluster, server, nic_ip AS name FROM topology.nic_ports WHERE nic_ip IS NOT NULL
),

listed AS (                    -- the cluster is that of the line, else that of the list's folder
    SELECT
        t.* EXCLUDE (cluster),
        coalesce(t.cluster, nullif(f.cluster, 'unknown'), c.cluster, 'unknown') AS cluster,
        lower(t.host) AS name,
        'gpu-' || CAST(nullif(regexp_extract(lower(t.host), 'gpu[-_]?0*([0-9]{1,9})([.].*)?$', 1), '') AS INTEGER) AS numbered
    FROM raw.task_list AS t
    JOIN raw.files AS f ON f.release_path = t.filename  -- whole
    CROSS JOIN clusters AS c  -- once
    WHERE f.status IN ('read', 'partial')
),

alone AS (                     -- a task that has a log is known from its log
    SELECT l.*
    FROM listed AS l
    ANTI JOIN staging.log_events AS e USING (cluster, task)  -- filter
),

placed AS (
    SELECT
        a.*,
        coalesce(min(n.server) FILTER (WHERE n.name = a.name), min(n.server)) AS server
    FROM alone AS a
    LEFT JOIN names AS n ON n.cluster = a.cluster AND (n.name = a.name OR n.name = a.numbered)  -- once
    GROUP BY ALL
),

alike AS (                     -- the three most similar names
    SELECT
        cluster,
        host,
        array_to_string(list(server ORDER BY likeness DESC, server)[:3], ', ') AS nearest
    FROM (
        SELECT DISTINCT p.cluster, p.host, s.server, jaro_winkler_similarity(lower(s.server), p.name) AS likeness
        FROM placed AS p
        JOIN topology.servers AS s USING (cluster)  -- filter
        WHERE p.server IS NULL AND s.evidence = 'workbook'
    )
    GROUP BY cluster, host
)

SELECT
    p.cluster,
    p.task,
    concat(p.host, CASE WHEN row_number() OVER times > 1 THEN concat('#', row_number() OVER times) END) AS pod,
    p.server,
    p.start_utc,
    coalesce(p.end_utc, greatest(h.end_utc, p.start_utc + INTERVAL '1 second'), p.start_utc + INTERVAL '1 second') AS end_utc,
    p.first_rank,
    p.ranks,
    p.hcas,
    'listed' AS source,
    a.nearest
FROM placed AS p
LEFT JOIN last_hours AS h USING (cluster)  -- once
LEFT JOIN alike AS a USING (cluster, host)  -- once
WINDOW times AS (PARTITION BY p.cluster, p.task, p.host ORDER BY p.start_utc, p.end_utc, p.filename, p.line)
UNION ALL BY NAME
SELECT
    cluster,
    {{ traffic_task('hour_utc', 'group_id') }} AS task,
    server AS pod,
    server,
    hour_utc AS start_utc,
    hour_utc + INTERVAL '1 hour' AS end_utc,
    CAST(NULL AS BIGINT) AS first_rank,
    CAST(NULL AS BIGINT) AS ranks,
    CAST(NULL AS VARCHAR) AS hcas,
    'inferred:traffic' AS source,
    CAST(NULL AS VARCHAR) AS nearest
FROM metrics.traffic_groups

/* ---
about: Pods of each training task, with server and ranks. Ranks come from lines of the pod's own log; the number in a pod's name is not a rank. Tasks without a log come from tasks.csv and from the traffic.
grain: [cluster, task, pod]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder, or its name in tasks.csv; traffic-HOUR-n for job n of metrics.traffic_jobs, even if it is a task that has a log or is listed
  pod: VARCHAR the pod; of a task without a log the server as listed, numbered where the task ran on it several times
  server: VARCHAR the server that the pod ran on, GPU-n
  host: VARCHAR name of the pod's node, host or address in the list of pod starts or in NCCL's lines; NULL where neither names one; of a task without a log the server as listed
  host_ip: VARCHAR address of that server; NULL for a task without a log
  start_utc: TIMESTAMP when the pod was started; NULL for a pod with a log that no list of pod starts has
  end_utc: TIMESTAMP end of the task on this server, as listed; without one the end of the loaded traffic, but at least a second after the start; NULL for a pod with a log
  first_rank: BIGINT [1] lowest rank of the pod; NULL where no line names a rank
  ranks: BIGINT [1] ranks of the pod
  evidence: VARCHAR evidence for first_rank, log where a line of the pod names it, inferred:rank_block where a line names another rank of the pod, listed
  server_evidence: VARCHAR evidence for the server, log (name of node or host), inferred:host_number (address of the host), listed or inferred:traffic
  logged_ranks: BIGINT [1] distinct ranks that log lines name
  log_lines: BIGINT [1] log lines that name a rank
  source: VARCHAR how the pod is known, log, listed (tasks.csv) or inferred:traffic (a job found in the traffic of an hour)
  hcas: VARCHAR adapters that the task used, as listed; NULL for all of the server, and for tasks that are not listed
  nearest: VARCHAR names of servers that resemble the listed one; NULL where the server is known, and for a pod with a log
checks:
  - evidence in ('log', 'inferred:rank_block', 'listed') or evidence is null
  - server_evidence in ('log', 'inferred:host_number', 'listed', 'inferred:traffic') or server_evidence is null
  - source in ('log', 'listed', 'inferred:traffic')
  - (first_rank is null) = (evidence is null)
  - end_utc > start_utc or end_utc is null
  - warn: "none: SELECT task, pod, host FROM this WHERE source = 'log' AND server IS NULL AND host IS NOT NULL"
    says: "{task}: the server of pod {pod} is unknown because no sheet names its host {host}"
  - warn: "none: SELECT task, pod FROM this WHERE source = 'log' AND server IS NULL AND host IS NULL"
    says: "{task}: the server of pod {pod} is unknown because its log names no node, host or address"
  - warn: server is not null or source = 'log'
    says: "{task}: no sheet has a server {pod}; names like it: {nearest}"
  # no rank is in two pods of a task
  - none: SELECT a.task, a.pod, b.pod FROM this AS a JOIN this AS b USING (cluster, task)
      WHERE a.source = 'log' AND a.pod < b.pod AND a.first_rank < b.first_rank + b.ranks AND b.first_rank < a.first_rank + a.ranks
sources: docs/metrics/tasks.md, docs/formats/tasks.md
--- */
WITH clusters AS (             -- the only cluster of the loaded files, for lists in a folder of their own
    SELECT CASE WHEN count(DISTINCT cluster) = 1 THEN min(cluster) END AS cluster FROM topology.servers
),

last_hours AS (
    SELECT cluster, max(hour_utc) + INTERVAL '1 hour' AS end_utc FROM staging.port_files GROUP BY cluster
),

names AS (                     -- names and addresses of each server, in small letters
    SELECT cluster, server, lower(unnest([server, sysname, host_ip])) AS name FROM topology.servers
    UNION
    SELECT cluster, server, nic_ip AS name FROM topology.nic_ports
),

listed AS (                    -- the cluster is that of the line, else that of the list's folder
    SELECT
        coalesce(t.cluster, nullif(f.cluster, 'unknown'), c.cluster, 'unknown') AS cluster,
        t.task, t.host, t.start_utc, t.end_utc, t.first_rank, t.ranks, t.hcas, t.filename, t.line,
        NULL AS known_server, 'listed' AS source
    FROM raw.task_list AS t
    JOIN raw.files AS f ON f.release_path = t.filename  -- whole
    CROSS JOIN clusters AS c  -- once
    WHERE f.status IN ('read', 'partial')
),

alone AS (                     -- listed tasks without a log, and jobs of the traffic, which may be any task
    SELECT l.*
    FROM listed AS l
    ANTI JOIN staging.log_events AS e USING (cluster, task)  -- filter
    UNION ALL
    SELECT
        cluster, {{ traffic_task('hour_utc', 'group_id') }} AS task, server AS host,
        hour_utc AS start_utc, hour_utc + INTERVAL '1 hour' AS end_utc,
        NULL AS first_rank, NULL AS ranks, NULL AS hcas, NULL AS filename, NULL AS line,
        server AS known_server, 'inferred:traffic' AS source
    FROM metrics.traffic_groups
),

placed AS (                    -- by the name as listed, else by the number at its end
    SELECT a.*, coalesce(min(a.known_server), min(n.server) FILTER (WHERE n.name = lower(a.host)), min(n.server)) AS server
    FROM alone AS a
    LEFT JOIN names AS n  -- once
        ON
            n.cluster = a.cluster
            AND n.name IN (
                lower(a.host), 'gpu-' || try_cast(regexp_extract(lower(a.host), 'gpu[-_]?0*([0-9]{1,9})([.].*)?$', 1) AS INTEGER)
            )
    GROUP BY ALL
),

alike AS (                     -- the three most similar names
    SELECT cluster, host, array_to_string(list(server ORDER BY likeness DESC, server)[:3], ', ') AS nearest
    FROM (
        SELECT DISTINCT p.cluster, p.host, s.server, jaro_winkler_similarity(lower(s.server), lower(p.host)) AS likeness
        FROM placed AS p
        JOIN topology.servers AS s USING (cluster)  -- filter
        WHERE p.server IS NULL AND s.evidence = 'workbook'
    )
    GROUP BY cluster, host
)

SELECT
    cluster, task, pod, server, host, host_ip, start_utc, CAST(NULL AS TIMESTAMP) AS end_utc, first_rank, ranks,
    evidence, server_evidence, logged_ranks, log_lines, 'log' AS source,
    CAST(NULL AS VARCHAR) AS hcas, CAST(NULL AS VARCHAR) AS nearest
FROM topology.logged_pods
UNION ALL
SELECT
    p.cluster,
    p.task,
    concat(p.host, CASE WHEN row_number() OVER times > 1 THEN concat('#', row_number() OVER times) END) AS pod,
    p.server,
    p.host,
    CAST(NULL AS VARCHAR) AS host_ip,
    p.start_utc,
    coalesce(p.end_utc, greatest(h.end_utc, p.start_utc + INTERVAL '1 second')) AS end_utc,
    p.first_rank,
    p.ranks,
    CASE WHEN p.first_rank IS NOT NULL THEN 'listed' END AS evidence,
    CASE WHEN p.server IS NOT NULL THEN p.source END AS server_evidence,
    0 AS logged_ranks,
    0 AS log_lines,
    p.source,
    p.hcas,
    a.nearest
FROM placed AS p
LEFT JOIN last_hours AS h USING (cluster)  -- once
LEFT JOIN alike AS a USING (cluster, host)  -- once
WINDOW times AS (PARTITION BY p.cluster, p.task, p.host ORDER BY p.start_utc, p.end_utc, p.filename, p.line)

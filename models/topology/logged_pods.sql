/* ---
about: Pods of training tasks with a log, with server and ranks; topology.task_pods has those of other tasks, too. No row depends on the loaded hours.
grain: [cluster, task, pod]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  server: VARCHAR the server that the pod ran on, GPU-n
  host: VARCHAR name of the pod's node, host or address in the list of pod starts or in NCCL's lines; NULL where neither names one
  host_ip: VARCHAR address of that server
  start_utc: TIMESTAMP when the pod was started; NULL without a list of pod starts
  first_rank: BIGINT [1] lowest rank of the pod; NULL where no line names a rank
  ranks: BIGINT [1] ranks of the pod
  evidence: VARCHAR evidence for first_rank, log where a line of the pod names it, inferred:rank_block where a line names another rank of the pod
  server_evidence: VARCHAR evidence for the server, log (name of node or host), inferred:host_number (address of the host)
  logged_ranks: BIGINT [1] distinct ranks that log lines name
  log_lines: BIGINT [1] log lines that name a rank
sources: docs/metrics/tasks.md
--- */
WITH logs AS (
    SELECT DISTINCT cluster, task, pod FROM staging.log_events
),

starts AS (                    -- a pod listed twice was restarted: the last start counts
    SELECT f.cluster, {{ task_name('p.filename') }} AS task, p.pod, p.ip AS host_ip, p.node, p.start AS start_utc
    FROM raw.pod_starts AS p
    JOIN raw.files AS f ON f.release_path = p.filename  -- whole
    WHERE f.status IN ('read', 'partial')
    QUALIFY row_number() OVER (PARTITION BY p.filename, p.pod ORDER BY p.start DESC, p.line DESC) = 1
),

pods AS (                      -- a log of several hosts has one pod per host
    SELECT l.cluster, l.task, l.pod
    FROM logs AS l
    WHERE NOT EXISTS (  -- filter
        SELECT 1 FROM logs AS h
        WHERE h.cluster = l.cluster AND h.task = l.task AND starts_with(h.pod, l.pod || '@')
    )
    UNION
    SELECT cluster, task, pod FROM starts
),

counted AS (
    SELECT p.cluster, p.task, count(*) AS pods, max(s.world_size) AS world_size, max(s.tensor_parallel * s.pipeline_parallel) AS model_ranks
    FROM pods AS p
    LEFT JOIN staging.task_settings AS s USING (cluster, task)  -- once
    GROUP BY ALL
),

world AS (                     -- lines of NCCL that name a rank of the world, not of a communicator split off it
    SELECT e.cluster, e.task, e.pod, e.rank, e.segment
    FROM staging.log_events AS e
    JOIN counted AS c USING (cluster, task)  -- whole
    WHERE e.kind = 'nccl_init' AND e.ranks = c.world_size AND NOT coalesce(starts_with(e.name, 'parent '), false)
),

told AS (                      -- number of ranks of the world with a known place
    SELECT cluster, task, count(DISTINCT rank) AS all_ranks FROM world GROUP BY ALL
),

placed_ranks AS (
    SELECT cluster, task, pod, count(DISTINCT rank) AS placed FROM world GROUP BY ALL
),

local_ranks AS (
    SELECT cluster, task, pod, count(DISTINCT local_rank) AS locals
    FROM staging.log_events
    WHERE kind = 'local_rank'
    GROUP BY ALL
),

sizes AS (                     -- ranks per pod: its listed local ranks, or all ranks with a known place, else an even share
    SELECT
        cluster,
        task,
        pod,
        coalesce(
            nullif(l.locals, 0),
            CASE WHEN t.all_ranks = c.world_size THEN coalesce(p.placed, 0) END,
            CASE WHEN c.world_size % c.pods = 0 THEN c.world_size // c.pods END
        ) AS ranks
    FROM pods
    JOIN counted AS c USING (cluster, task)  -- whole
    LEFT JOIN told AS t USING (cluster, task)  -- once
    LEFT JOIN placed_ranks AS p USING (cluster, task, pod)  -- once
    LEFT JOIN local_ranks AS l USING (cluster, task, pod)  -- once
),

named AS (                     -- lines that name a rank of the world
    SELECT e.cluster, e.task, e.pod, e.rank, e.segment
    FROM staging.log_events AS e
    JOIN counted AS c USING (cluster, task)  -- whole
    WHERE e.kind = 'rank' AND (e.name <> 'zero_pp_rank' OR c.model_ranks = 1)
    UNION ALL
    SELECT cluster, task, pod, rank, segment FROM world
),

ranked AS (                    -- a launcher numbers the ranks of a pod consecutively; lines that contradict this are not used
    SELECT
        n.cluster,
        n.task,
        n.pod,
        s.ranks,
        CASE WHEN min(n.rank // s.ranks) = max(n.rank // s.ranks) THEN min(n.rank // s.ranks * s.ranks) END AS first_rank,
        min(n.rank) AS lowest_rank,
        count(DISTINCT n.rank) AS logged_ranks,
        count(DISTINCT n.segment) AS log_lines
    FROM named AS n
    JOIN sizes AS s USING (cluster, task, pod)  -- whole
    GROUP BY ALL
),

clashing AS (                  -- pods that would share ranks: their lines contradict each other, and none is used
    SELECT DISTINCT a.cluster, a.task, a.pod
    FROM ranked AS a
    JOIN ranked AS b USING (cluster, task)  -- filter
    WHERE a.pod <> b.pod AND a.first_rank < b.first_rank + b.ranks AND b.first_rank < a.first_rank + a.ranks
),

believed AS (
    SELECT r.cluster, r.task, r.pod, r.lowest_rank, r.logged_ranks, r.log_lines, CASE WHEN c.pod IS NULL THEN r.first_rank END AS first_rank
    FROM ranked AS r
    LEFT JOIN clashing AS c USING (cluster, task, pod)  -- once
),

spoken AS (                    -- host as stated by the pod's own log
    SELECT
        cluster,
        task,
        pod,
        min(regexp_extract(upper(host), '(GPU-[0-9]+)$', 1)) FILTER (WHERE regexp_matches(upper(host), 'GPU-[0-9]+$')) AS server,
        min(host) AS host,
        min(value) FILTER (WHERE kind = 'nccl_address') AS host_ip
    FROM staging.log_events
    WHERE family = 'nccl'
    GROUP BY ALL
),

hosts AS (
    SELECT cluster, host_ip, min(server) AS server
    FROM topology.sheet_servers
    WHERE host_ip IS NOT NULL
    GROUP BY ALL
),

placed AS (
    SELECT
        cluster,
        task,
        pod,
        coalesce(nullif(regexp_extract(upper(t.node), '(GPU-[0-9]+)$', 1), ''), l.server) AS named_server,
        coalesce(t.host_ip, l.host_ip) AS host_ip,
        coalesce(t.node, l.host, t.host_ip, l.host_ip) AS host,
        t.start_utc
    FROM pods
    LEFT JOIN starts AS t USING (cluster, task, pod)  -- once
    LEFT JOIN spoken AS l USING (cluster, task, pod)  -- once
)

SELECT
    cluster,
    task,
    pod,
    coalesce(p.named_server, h.server) AS server,
    p.host,
    host_ip,
    p.start_utc,
    r.first_rank,
    s.ranks,
    CASE WHEN r.first_rank = r.lowest_rank THEN 'log' WHEN r.first_rank IS NOT NULL THEN 'inferred:rank_block' END AS evidence,
    CASE WHEN p.named_server IS NOT NULL THEN 'log' WHEN h.server IS NOT NULL THEN 'inferred:host_number' END AS server_evidence,
    coalesce(r.logged_ranks, 0) AS logged_ranks,
    coalesce(r.log_lines, 0) AS log_lines
FROM placed AS p
JOIN sizes AS s USING (cluster, task, pod)  -- whole
LEFT JOIN believed AS r USING (cluster, task, pod)  -- once
LEFT JOIN hosts AS h USING (cluster, host_ip)  -- once

/* ---
about: NCCL communicators of each training task, one row per member found in a log, with a name shared by all members.
grain: [cluster, task, pod, pid, tid, segment]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR pod whose log has the line
  pid: BIGINT [1] the member's process
  tid: BIGINT [1] the thread that created the communicator
  segment: INTEGER [1] segment of the log where the communicator was complete, else where the log names the rank
  line: INTEGER [1] line of that segment
  host: VARCHAR the member's host
  pointer: VARCHAR pointer of the communicator in that process
  communicator: VARCHAR shared name, commId where logged; else world-1, world-2 .. by order in the process where it has all ranks; else host, process and pointer
  is_world: BOOLEAN true if the communicator has all ranks of the task and was not split off another one
  rank: INTEGER [1] the member's rank in the communicator
  ranks: INTEGER [1] number of members of the communicator
  local_rank: INTEGER [1] the member's GPU
  begins: INTEGER [1] first segment from which lines of the thread belong to this communicator
checks:
  - none: SELECT e.cluster, e.task, e.pod, e.segment FROM staging.log_events AS e ANTI JOIN this USING (cluster, task, pod, segment)
      WHERE e.kind = 'nccl_init' AND e.pid IS NOT NULL
sources: docs/metrics/tasks.md
--- */
-- A rank is numbered within a communicator, and a pointer is valid in one process of a host. Without an identifier, only
-- communicators of all ranks can be matched across processes: every rank creates them in the same order.
WITH said AS (
    SELECT
        e.cluster,
        e.task,
        e.pod,
        e.pid,
        e.tid,
        e.segment,
        e.line,
        e.host,
        e.kind,
        e.communicator AS pointer,
        e.name,
        e.rank,
        e.ranks,
        e.local_rank,
        row_number() OVER (PARTITION BY e.cluster, e.task, e.pod, e.segment ORDER BY e.item) AS place,
        lead(e.kind) OVER (
            PARTITION BY e.cluster, e.task, e.pod, e.host, e.pid, e.tid, e.communicator ORDER BY e.segment, e.item
        ) AS next_kind,
        lag(e.kind) OVER (
            PARTITION BY e.cluster, e.task, e.pod, e.host, e.pid, e.tid, e.communicator ORDER BY e.segment, e.item
        ) AS before_kind
    FROM staging.log_events AS e
    WHERE e.kind IN ('nccl_init', 'nccl_init_start') AND e.pid IS NOT NULL
),

made AS (                      -- communicators that were completed, or never seen complete
    SELECT *
    FROM said
    WHERE place = 1 AND (kind = 'nccl_init' OR next_kind IS NULL)
),

started AS (                   -- segment where the thread began to create the communicator
    SELECT m.cluster, m.task, m.pod, m.segment, max(b.segment) AS started
    FROM made AS m
    JOIN said AS b
        ON
            b.cluster = m.cluster
            AND b.task = m.task
            AND b.pod = m.pod
            AND b.host IS NOT DISTINCT FROM m.host
            AND b.pid = m.pid
            AND b.tid = m.tid
            AND b.pointer = m.pointer
            AND b.kind = 'nccl_init_start'
            AND coalesce(b.before_kind = 'nccl_init', true)
            AND b.segment < m.segment
    GROUP BY m.cluster, m.task, m.pod, m.segment
),

bounded AS (                   -- lines of the thread about the communicator: from its start, else from the end of the previous one
    SELECT
        m.*,
        b.started,
        lag(m.segment) OVER (PARTITION BY m.cluster, m.task, m.pod, m.host, m.pid, m.tid ORDER BY m.segment) AS before
    FROM made AS m
    LEFT JOIN started AS b ON b.cluster = m.cluster AND b.task = m.task AND b.pod = m.pod AND b.segment = m.segment
),

named AS (
    SELECT
        b.*,
        nullif(regexp_extract(b.name, '^commId (0x[0-9a-f]+)$', 1), '') AS comm_id,
        coalesce(b.ranks = s.world_size AND NOT coalesce(starts_with(b.name, 'parent '), false), false) AS is_world
    FROM bounded AS b
    JOIN staging.task_settings AS s ON s.cluster = b.cluster AND s.task = b.task
),

ordered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster, task, pod, host, pid, rank, is_world ORDER BY segment) AS turn,
        row_number() OVER (PARTITION BY cluster, task, pod, host, pid, rank, comm_id ORDER BY segment) AS turn_of_id,
        row_number() OVER (PARTITION BY cluster, task, pod, host, pid, pointer ORDER BY segment) AS turn_of_pointer
    FROM named
)

SELECT
    cluster,
    task,
    pod,
    pid,
    tid,
    segment,
    line,
    host,
    pointer,
    CASE
        WHEN comm_id IS NOT NULL THEN 'commId ' || comm_id || CASE WHEN turn_of_id > 1 THEN '#' || turn_of_id ELSE '' END
        WHEN is_world THEN 'world-' || turn
        ELSE
            coalesce(host, pod) || ':' || pid || ':' || pointer || CASE WHEN turn_of_pointer > 1 THEN '#' || turn_of_pointer ELSE '' END
    END AS communicator,
    is_world,
    rank,
    ranks,
    local_rank,
    coalesce(started, before + 1, 0) AS begins
FROM ordered

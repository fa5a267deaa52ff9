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
        cluster, task, pod, pid, tid, segment, line, host, kind, name, rank, ranks, local_rank,
        communicator AS pointer,
        row_number() OVER (PARTITION BY cluster, task, pod, segment ORDER BY item) AS place,
        lead(kind) OVER (PARTITION BY cluster, task, pod, host, pid, tid, communicator ORDER BY segment, item) AS next_kind,
        lag(kind) OVER (PARTITION BY cluster, task, pod, host, pid, tid, communicator ORDER BY segment, item) AS before_kind
    FROM staging.log_events
    WHERE kind IN ('nccl_init', 'nccl_init_start') AND pid IS NOT NULL
),

begun AS (                     -- segment where the thread began to create the communicator
    SELECT
        *,
        max(segment) FILTER (WHERE kind = 'nccl_init_start' AND coalesce(before_kind = 'nccl_init', true)) OVER (
            PARTITION BY cluster, task, pod, host, pid, tid, pointer
            ORDER BY segment
            RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS started
    FROM said
),

made AS (                      -- completed, or never seen complete; its lines begin after the end of the thread's previous one
    SELECT *, lag(segment) OVER (PARTITION BY cluster, task, pod, host, pid, tid ORDER BY segment) AS before
    FROM begun
    WHERE place = 1 AND (kind = 'nccl_init' OR next_kind IS NULL)
),

named AS (
    SELECT
        m.*,
        nullif(regexp_extract(m.name, '^commId (0x[0-9a-f]+)$', 1), '') AS comm_id,
        coalesce(m.ranks = s.world_size AND NOT coalesce(starts_with(m.name, 'parent '), false), false) AS is_world
    FROM made AS m
    JOIN staging.task_settings AS s USING (cluster, task)  -- check
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
        ELSE coalesce(host, pod) || ':' || pid || ':' || pointer || CASE WHEN turn_of_pointer > 1 THEN '#' || turn_of_pointer ELSE '' END
    END AS communicator,
    is_world,
    rank,
    ranks,
    local_rank,
    coalesce(started, before + 1, 0) AS begins
FROM ordered

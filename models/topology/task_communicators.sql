/* ---
about: NCCL's communicators of each training task, a row a member that a log names, and the name under which its members share it.
grain: [cluster, task, pod, pid, tid, segment]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod whose log says it
  pid: BIGINT [1] the member's process
  tid: BIGINT [1] the thread that made the communicator
  segment: INTEGER [1] where the log says that it was complete
  line: INTEGER [1] the line of it
  host: VARCHAR the member's host
  pointer: VARCHAR the communicator in that process
  communicator: VARCHAR its name here, commId where logged; else world-1, world-2 .. where it has all ranks, by order in the process; else pod, process and pointer
  is_world: BOOLEAN whether it has all ranks of the task
  rank: INTEGER [1] the member's rank in it
  ranks: INTEGER [1] how many members it has
  local_rank: INTEGER [1] the member's GPU
checks:
  - none: SELECT e.cluster, e.task, e.pod, e.segment FROM staging.log_events AS e ANTI JOIN this USING (cluster, task, pod, segment)
      WHERE e.kind = 'nccl_init' AND e.pid IS NOT NULL
sources: docs/metrics/tasks.md
--- */
-- Ranks belong to a communicator. Without an identifier only those of all ranks can be told to be the same in two
-- processes: every rank makes them in the same order.
WITH made AS (
    SELECT
        e.cluster,
        e.task,
        e.pod,
        e.pid,
        e.tid,
        e.segment,
        e.line,
        e.host,
        e.communicator AS pointer,
        nullif(regexp_extract(e.name, '^commId (0x[0-9a-f]+)$', 1), '') AS comm_id,
        coalesce(e.ranks = s.world_size, false) AS is_world,
        e.rank,
        e.ranks,
        e.local_rank,
        row_number() OVER (PARTITION BY e.cluster, e.task, e.pod, e.segment ORDER BY e.item) AS place
    FROM staging.log_events AS e
    JOIN staging.task_settings AS s ON s.cluster = e.cluster AND s.task = e.task
    WHERE e.kind = 'nccl_init' AND e.pid IS NOT NULL
),

ordered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster, task, pod, pid, rank, is_world ORDER BY segment) AS turn
    FROM made
    WHERE place = 1
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
        WHEN comm_id IS NOT NULL THEN 'commId ' || comm_id
        WHEN is_world THEN 'world-' || turn
        ELSE pod || ':' || pid || ':' || pointer
    END AS communicator,
    is_world,
    rank,
    ranks,
    local_rank
FROM ordered

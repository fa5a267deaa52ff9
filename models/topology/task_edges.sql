/* ---
about: 'Log lines of NCCL (or RCCL, which AMD GPUs use) that name ranks which send to each other: a connection, a printed ring, or a place in a tree, each with its communicator, the group of ranks that it belongs to.'
grain: [cluster, task, pod, segment, item]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR pod whose log has the line
  segment: INTEGER [1] place of the line in the log, counted by line feeds and carriage returns, as in staging.log_events
  item: INTEGER [1] number of the event in its line
  line: INTEGER [1] line number in that log
  file: VARCHAR the log's path in its release
  kind: VARCHAR nccl_edge (one connection), nccl_ring (ranks in order) or nccl_tree (a rank with its parent and children)
  communicator: VARCHAR as in topology.task_communicators; where it is unknown, a name of host, process and thread
  is_world: BOOLEAN true if the communicator has all ranks of the task; false where the communicator is unknown, too
  ranks: INTEGER [1] number of members of the communicator, else the number that the line itself says; NULL where neither is known
  connection: VARCHAR connection number of an edge; NULL where the line has none, as before NCCL 2.14
  is_shared: BOOLEAN true if the edge uses shared buffers, as point-to-point operations (send and receive) do
  channel: INTEGER [1] channel
  rank: INTEGER [1] rank at a place in a tree
  src_rank: INTEGER [1] sending rank
  dst_rank: INTEGER [1] receiving rank
  direction: VARCHAR send or receive, seen from the writer of the line
  own_rank: 'INTEGER [1] rank of the writer: the rank at a place in a tree, the source of a send, or the destination of a receive'
  transport: VARCHAR NET/IB, NET/Socket ..
  nic_index: INTEGER [1] index of the NIC of the writer's host, as numbered by the transport
  host: VARCHAR the writer's host
  pid: BIGINT [1] the writer's process
  listed: VARCHAR ranks of a ring in order, or parent and children of a place in a tree, separated by spaces
sources: docs/metrics/tasks.md
--- */
-- NCCL's lines number ranks within a communicator, but do not say which. A line with the pointer of one (`communicator` of
-- log_events; RCCL alone writes it) fits the communicator of its process with that pointer. Any other fits a communicator of
-- its process that was begun before the line, in which the writer's rank, if the line says it, is that of the process, and
-- which has all ranks that the line names. Of those that fit, only those count to which the first of these rules applies:
--   1. the line names it by its pointer, which may be used again: it is the first that was begun before the line and is
--      complete after it, else the last before it, else the next one,
--   2. its thread was creating it at that time, and all lines that the thread printed meanwhile fit it (if one does not, they
--      are of a communicator whose completion the log lacks; rules 3 and 4 may give them another one),
--   3. it was complete before the line (from 2.22 on NCCL connects late, from any thread),
--   4. it was complete later.
-- Where two are left, or none, the line gets a name from host (or pod), process, and pointer or else thread, which several
-- communicators may share. Lines of one that the log never says to be complete may so fit another one.
WITH lines AS (                -- own_rank is the rank of the process that wrote the line, top_rank the largest that the line names
    SELECT
        *,
        CASE
            WHEN kind = 'nccl_tree' THEN rank
            WHEN direction = 'send' THEN src_rank
            WHEN direction = 'receive' THEN dst_rank
        END AS own_rank,
        CASE
            WHEN kind = 'nccl_edge' THEN greatest(src_rank, dst_rank)
            ELSE list_max(CAST(string_split(value, ' ') AS INTEGER[]))
        END AS top_rank
    FROM staging.log_events
    WHERE kind IN ('nccl_edge', 'nccl_ring', 'nccl_tree')
),

candidates AS (                -- a line with each communicator of its process, which was created from line `begins` on and is complete at `segment`
    SELECT
        e.cluster, e.task, e.pod, e.segment, e.item,
        c.communicator,
        c.is_world,
        c.ranks,
        c.segment AS complete_segment,
        c.begins > e.segment AS is_later,
        c.pointer = e.communicator AS is_named,
        c.tid = e.tid AND e.segment BETWEEN c.begins AND c.segment AS is_creating,
        CASE
            WHEN e.communicator IS NOT NULL THEN c.pointer = e.communicator
            ELSE c.begins <= e.segment AND coalesce(e.own_rank = c.rank, true) AND e.top_rank < c.ranks
        END AS fits
    FROM lines AS e
    JOIN topology.task_communicators AS c USING (cluster, task, pod, pid)  -- filter
    WHERE c.host IS NOT DISTINCT FROM e.host
),

ruled AS (
    SELECT
        *,
        CASE
            WHEN is_named THEN 1
            WHEN is_creating THEN CASE WHEN bool_and(fits) FILTER (WHERE is_creating) OVER of_communicator THEN 2 END
            WHEN complete_segment < segment THEN 3
            ELSE 4
        END AS rule
    FROM candidates
    WINDOW of_communicator AS (PARTITION BY cluster, task, pod, communicator, complete_segment)
),

preferred AS (                 -- candidates of the first of the four rules that has any
    SELECT *
    FROM ruled
    WHERE fits
    QUALIFY rule = min(rule) OVER (PARTITION BY cluster, task, pod, segment, item)
),

chosen AS (
    SELECT cluster, task, pod, segment, item, communicator AS known, is_world, ranks AS of_ranks
    FROM preferred
    WINDOW one_line AS (PARTITION BY cluster, task, pod, segment, item)
    QUALIFY (rule = 1 OR count(DISTINCT communicator) OVER one_line = 1) AND row_number() OVER (
        PARTITION BY cluster, task, pod, segment, item
        ORDER BY is_later, complete_segment < segment, abs(complete_segment - segment), communicator
    ) = 1
)

SELECT
    cluster,
    task,
    pod,
    segment,
    item,
    line,
    file,
    kind,
    coalesce(known, concat_ws(':', coalesce(host, pod), coalesce(pid::VARCHAR, ''), coalesce(communicator, tid::VARCHAR, ''))) AS communicator,
    coalesce(is_world, false) AS is_world,
    coalesce(of_ranks, ranks) AS ranks,
    CASE WHEN kind = 'nccl_edge' THEN name END AS connection,  -- the number that an edge is printed with
    CASE WHEN kind = 'nccl_edge' THEN coalesce(contains(options, '/Shared'), false) END AS is_shared,
    channel,
    rank,
    src_rank,
    dst_rank,
    direction,
    own_rank,
    transport,
    nic_index,
    host,
    pid,
    CASE WHEN kind IN ('nccl_ring', 'nccl_tree') THEN value END AS listed
FROM lines
LEFT JOIN chosen USING (cluster, task, pod, segment, item)  -- grain, once

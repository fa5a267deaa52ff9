/* ---
about: NCCL log lines about rings, trees and connections, each with its communicator.
grain: [cluster, task, pod, segment, item]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR pod whose log has the line
  segment: INTEGER [1] segment of the log
  item: INTEGER [1] number of the event in its segment
  line: INTEGER [1] line of that segment
  file: VARCHAR the log's path in its release
  kind: VARCHAR nccl_edge, nccl_ring or nccl_tree
  communicator: VARCHAR as in topology.task_communicators
  is_world: BOOLEAN true if the communicator has all ranks of the task
  ranks: INTEGER [1] number of members of the communicator; NULL where no line shows it complete
  connection: VARCHAR connection number of an edge; NULL where the line has none, as before NCCL 2.14
  is_shared: BOOLEAN true if the edge uses shared buffers, as sends and receives do
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
-- A line belongs to the communicator that its thread is creating at that time, if all lines that the thread prints
-- meanwhile fit that communicator; else the end of another one is missing. Other lines (NCCL connects late from 2.22
-- on, and from any thread) belong to the only communicator of the process that fits: its rank is the
-- writer's, and it has all ranks that the lines name. Where two fit, a line stays with its thread.
-- RCCL's lines name their communicator.
WITH listed_ranks AS (
    SELECT cluster, task, pod, segment, item, unnest(string_split(value, ' ')) AS rank
    FROM staging.log_events
    WHERE kind IN ('nccl_ring', 'nccl_tree')
),

tops AS (
    SELECT cluster, task, pod, segment, item, max(CAST(rank AS INTEGER)) AS top_rank
    FROM listed_ranks
    GROUP BY cluster, task, pod, segment, item
),

spoken AS (
    SELECT
        e.*,
        CASE
            WHEN e.kind = 'nccl_tree' THEN e.rank
            WHEN e.direction = 'send' THEN e.src_rank
            WHEN e.direction = 'receive' THEN e.dst_rank
        END AS own_rank,
        coalesce(t.top_rank, greatest(e.src_rank, e.dst_rank)) AS top_rank
    FROM staging.log_events AS e
    LEFT JOIN tops AS t
        ON t.cluster = e.cluster AND t.task = e.task AND t.pod = e.pod AND t.segment = e.segment AND t.item = e.item
    WHERE e.kind IN ('nccl_edge', 'nccl_ring', 'nccl_tree')
),

pairs AS (
    SELECT
        e.cluster,
        e.task,
        e.pod,
        e.segment,
        e.item,
        c.communicator,
        c.is_world,
        c.ranks,
        c.segment AS complete_segment,
        c.pointer = e.communicator AS is_named,
        c.tid = e.tid AND e.segment BETWEEN c.begins AND c.segment AS is_inside,
        CASE
            WHEN e.communicator IS NOT NULL THEN c.pointer = e.communicator
            ELSE coalesce(e.own_rank = c.rank, true) AND e.top_rank < c.ranks
        END AS fits
    FROM spoken AS e
    JOIN topology.task_communicators AS c
        ON
            c.cluster = e.cluster
            AND c.task = e.task
            AND c.pod = e.pod
            AND c.pid = e.pid
            AND c.host IS NOT DISTINCT FROM e.host
),

fitting AS (
    SELECT
        *,
        CASE
            WHEN is_named THEN 1
            WHEN is_inside THEN 2
            WHEN complete_segment < segment THEN 3
            ELSE 4
        END AS choice
    FROM (
        SELECT
            *,
            bool_and(fits) FILTER (WHERE is_inside) OVER (
                PARTITION BY cluster, task, pod, communicator, complete_segment
            ) AS all_fit
        FROM pairs
    ) AS judged
    WHERE fits AND (is_named OR all_fit OR NOT is_inside)
),

best AS (
    SELECT cluster, task, pod, segment, item, min(choice) AS choice
    FROM fitting
    GROUP BY cluster, task, pod, segment, item
),

chosen AS (                    -- for RCCL the communicator that has the pointer at that time; for other lines the only one that fits
    SELECT
        f.cluster,
        f.task,
        f.pod,
        f.segment,
        f.item,
        arg_min(
            f.communicator,
            struct_pack(
                a := CASE WHEN f.complete_segment >= f.segment THEN f.complete_segment - f.segment ELSE 1000000000 - f.complete_segment END,
                b := f.communicator
            )
        ) AS communicator,
        bool_and(f.is_world) AS is_world,
        max(f.ranks) AS ranks
    FROM fitting AS f
    JOIN best AS b
        ON
            b.cluster = f.cluster
            AND b.task = f.task
            AND b.pod = f.pod
            AND b.segment = f.segment
            AND b.item = f.item
            AND b.choice = f.choice
    GROUP BY f.cluster, f.task, f.pod, f.segment, f.item
    HAVING count(DISTINCT f.communicator) = 1 OR min(f.choice) = 1
)

SELECT
    e.cluster,
    e.task,
    e.pod,
    e.segment,
    e.item,
    e.line,
    e.file,
    e.kind,
    coalesce(
        c.communicator,
        coalesce(e.host, e.pod) || ':' || coalesce(CAST(e.pid AS VARCHAR), '') || ':'
        || coalesce(e.communicator, CAST(e.tid AS VARCHAR), '')
    ) AS communicator,
    coalesce(c.is_world, false) AS is_world,
    coalesce(c.ranks, e.ranks) AS ranks,
    CASE WHEN e.kind = 'nccl_edge' THEN e.name END AS connection,
    CASE WHEN e.kind = 'nccl_edge' THEN coalesce(contains(e.options, '/Shared'), false) END AS is_shared,
    e.channel,
    e.rank,
    e.src_rank,
    e.dst_rank,
    e.direction,
    e.own_rank,
    e.transport,
    e.nic_index,
    e.host,
    e.pid,
    CASE WHEN e.kind IN ('nccl_ring', 'nccl_tree') THEN e.value END AS listed
FROM spoken AS e
LEFT JOIN chosen AS c
    ON c.cluster = e.cluster AND c.task = e.task AND c.pod = e.pod AND c.segment = e.segment AND c.item = e.item

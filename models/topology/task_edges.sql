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
WITH spoken AS (
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
    JOIN topology.task_communicators AS c USING (cluster, task, pod, pid)  -- filter
    WHERE c.host IS NOT DISTINCT FROM e.host
),

judged AS (
    SELECT
        *,
        bool_and(fits) FILTER (WHERE is_inside) OVER (
            PARTITION BY cluster, task, pod, communicator, complete_segment
        ) AS all_fit
    FROM pairs
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
    FROM judged
    WHERE fits AND (is_named OR all_fit OR NOT is_inside)
    QUALIFY choice = min(choice) OVER (PARTITION BY cluster, task, pod, segment, item)
),

chosen AS (                    -- for RCCL the communicator that has the pointer at that time; for other lines the only one that fits
    SELECT
        cluster,
        task,
        pod,
        segment,
        item,
        arg_min(
            communicator,
            struct_pack(
                a := CASE WHEN complete_segment >= segment THEN complete_segment - segment ELSE 1000000000 - complete_segment END,
                b := communicator
            )
        ) AS known,
        bool_and(is_world) AS is_world,
        max(ranks) AS of_ranks
    FROM fitting
    GROUP BY ALL
    HAVING count(DISTINCT communicator) = 1 OR min(choice) = 1
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
    coalesce(
        known,
        coalesce(host, pod) || ':' || coalesce(CAST(pid AS VARCHAR), '') || ':'
        || coalesce(communicator, CAST(tid AS VARCHAR), '')
    ) AS communicator,
    coalesce(is_world, false) AS is_world,
    coalesce(of_ranks, ranks) AS ranks,
    CASE WHEN kind = 'nccl_edge' THEN name END AS connection,
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
FROM spoken
LEFT JOIN chosen USING (cluster, task, pod, segment, item)  -- grain, once

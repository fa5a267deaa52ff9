/* ---
about: Lines of NCCL on rings, trees and connections, each with the communicator that it belongs to.
grain: [cluster, task, pod, segment, item]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod whose log says it
  segment: INTEGER [1] where it says so
  item: INTEGER [1] event of the segment
  line: INTEGER [1] the line of it
  file: VARCHAR the log's path in its release
  kind: VARCHAR nccl_edge, nccl_ring, nccl_hop or nccl_tree
  communicator: VARCHAR as in topology.task_communicators
  is_world: BOOLEAN whether it has all ranks of the task
  ranks: INTEGER [1] how many members it has; NULL where no line completes it
  before_rings: BOOLEAN whether the thread says only later that all rings are connected
  connection: VARCHAR number of the connection of an edge, 0 for collectives, 1 for sends and receives
  channel: INTEGER [1] channel
  rank: INTEGER [1] rank of a tree's place
  src_rank: INTEGER [1] sending rank
  dst_rank: INTEGER [1] receiving rank
  direction: VARCHAR send or receive, as the writer sees it
  nic_index: INTEGER [1] NIC of the writer's host
  listed: VARCHAR ranks of a ring in order, or parent and children of a tree's place, between blanks
sources: docs/metrics/tasks.md
--- */
-- The lines on a communicator stand before the one that says that it is complete, in the same thread; some come late,
-- and from 2.22 on from threads that name none: those are believed only where the process has no second communicator.
-- RCCL's lines name theirs themselves.
WITH alone AS (
    SELECT cluster, task, pod, host, pid
    FROM topology.task_communicators
    GROUP BY cluster, task, pod, host, pid
    HAVING count(*) = 1
),

spoken AS (
    SELECT *
    FROM staging.log_events
    WHERE kind IN ('nccl_edge', 'nccl_ring', 'nccl_hop', 'nccl_tree')
),

candidates AS (
    SELECT
        e.cluster,
        e.task,
        e.pod,
        e.segment,
        e.item,
        c.communicator,
        c.is_world,
        c.ranks,
        row_number() OVER (
            PARTITION BY e.cluster, e.task, e.pod, e.segment, e.item
            ORDER BY
                CASE WHEN c.segment > e.segment THEN 0 ELSE 1 END,
                abs(c.segment - e.segment)
        ) AS place
    FROM spoken AS e
    JOIN topology.task_communicators AS c
        ON c.cluster = e.cluster AND c.task = e.task AND c.pod = e.pod AND c.pid = e.pid AND c.host = e.host
    LEFT JOIN alone AS a
        ON a.cluster = e.cluster AND a.task = e.task AND a.pod = e.pod AND a.pid = e.pid AND a.host = e.host
    WHERE c.pointer = e.communicator OR (e.communicator IS NULL AND (c.tid = e.tid OR a.pid IS NOT NULL))
),

connected AS (                 -- where each thread says that its rings are connected
    SELECT cluster, task, pod, pid, tid, segment
    FROM staging.log_events
    WHERE kind = 'nccl_connected' AND name = 'all rings'
),

next_connected AS (
    SELECT e.cluster, e.task, e.pod, e.segment, e.item, min(r.segment) AS segment_of_rings
    FROM spoken AS e
    JOIN connected AS r
        ON r.cluster = e.cluster AND r.task = e.task AND r.pod = e.pod AND r.pid = e.pid AND r.tid = e.tid AND r.segment > e.segment
    GROUP BY e.cluster, e.task, e.pod, e.segment, e.item
),

next_complete AS (
    SELECT e.cluster, e.task, e.pod, e.segment, e.item, min(c.segment) AS segment_of_end
    FROM spoken AS e
    JOIN topology.task_communicators AS c
        ON c.cluster = e.cluster AND c.task = e.task AND c.pod = e.pod AND c.pid = e.pid AND c.tid = e.tid AND c.segment > e.segment
    GROUP BY e.cluster, e.task, e.pod, e.segment, e.item
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
    coalesce(c.communicator, e.pod || ':' || coalesce(CAST(e.pid AS VARCHAR), '') || ':' || coalesce(CAST(e.tid AS VARCHAR), '')) AS communicator,
    coalesce(c.is_world, false) AS is_world,
    c.ranks,
    r.segment_of_rings IS NOT NULL AND (d.segment_of_end IS NULL OR r.segment_of_rings < d.segment_of_end) AS before_rings,
    CASE WHEN e.kind = 'nccl_edge' THEN coalesce(e.name, '0') END AS connection,
    e.channel,
    e.rank,
    e.src_rank,
    e.dst_rank,
    e.direction,
    e.nic_index,
    CASE WHEN e.kind IN ('nccl_ring', 'nccl_tree') THEN e.value END AS listed
FROM spoken AS e
LEFT JOIN candidates AS c
    ON c.cluster = e.cluster AND c.task = e.task AND c.pod = e.pod AND c.segment = e.segment AND c.item = e.item AND c.place = 1
LEFT JOIN next_connected AS r
    ON r.cluster = e.cluster AND r.task = e.task AND r.pod = e.pod AND r.segment = e.segment AND r.item = e.item
LEFT JOIN next_complete AS d
    ON d.cluster = e.cluster AND d.task = e.task AND d.pod = e.pod AND d.segment = e.segment AND d.item = e.item

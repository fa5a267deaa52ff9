/* ---
about: 'Path of every ring or tree edge of a training task between servers: rank, NIC and leaf port at both ends.'
grain: [cluster, task, communicator, channel, kind, src_rank, dst_rank]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  communicator: VARCHAR as in topology.task_communicators
  channel: INTEGER [1] channel
  kind: VARCHAR ring or tree (the edge is in a printed ring or tree), p2p (sends and receives over shared buffers), unknown
  src_rank: INTEGER [1] sending rank
  dst_rank: INTEGER [1] receiving rank
  src_server: VARCHAR server of the sending rank
  src_hca: VARCHAR NIC that the rank sends through; NULL where unknown
  src_switch: VARCHAR leaf of that NIC
  src_port: VARCHAR the leaf's port
  dst_server: VARCHAR server of the receiving rank
  dst_hca: VARCHAR NIC that the rank receives through; NULL where unknown
  dst_switch: VARCHAR leaf of that NIC
  dst_port: VARCHAR the leaf's port
  same_leaf: BOOLEAN true if both NICs are on one leaf; NULL where one is unknown
  evidence: VARCHAR evidence for the edge, log (a line of this connection), listed (read from a printed ring or tree) or inferred:ring_pattern
  src_evidence: VARCHAR evidence for the sending NIC, log (edge and NIC list), inferred:nic_sheet_order (edge only) or inferred:ring_pattern
  dst_evidence: VARCHAR evidence for the receiving NIC, with the same values
  file: VARCHAR log with the line of the edge, or with the list that it was inferred from
  line: INTEGER [1] line of that log
checks:
  - kind in ('ring', 'tree', 'p2p', 'unknown')
  - evidence in ('log', 'listed', 'inferred:ring_pattern')
  - src_evidence in ('log', 'inferred:nic_sheet_order', 'inferred:ring_pattern') or src_evidence is null
  - dst_evidence in ('log', 'inferred:nic_sheet_order', 'inferred:ring_pattern') or dst_evidence is null
  - src_server <> dst_server or src_server is null or dst_server is null
sources: docs/metrics/tasks.md
--- */
WITH ranks_said AS (           -- lines that place a rank of a communicator: its own rank, a place in a tree, or an end of an edge by direction
    SELECT cluster, task, communicator, rank, pod
    FROM topology.task_communicators
    UNION
    SELECT cluster, task, communicator, own_rank AS rank, pod
    FROM topology.task_edges
    WHERE own_rank IS NOT NULL
),

said AS (                      -- pod of each rank of a communicator, where lines agree
    SELECT cluster, task, communicator, rank, min(pod) AS pod
    FROM ranks_said
    GROUP BY ALL
    HAVING min(pod) = max(pod)
),

worlds AS (
    SELECT DISTINCT cluster, task, communicator, true AS is_world
    FROM topology.task_edges
    WHERE is_world
),

numbered AS (
    SELECT cluster, task, communicator, unnest(range(first_rank, first_rank + ranks)) AS rank, pod
    FROM topology.logged_pods
    JOIN worlds USING (cluster, task)  -- check of task_pods
),

members AS (
    SELECT cluster, task, communicator, rank, pod
    FROM said
    UNION
    SELECT cluster, task, communicator, rank, pod
    FROM numbered
    ANTI JOIN said USING (cluster, task, communicator, rank)  -- filter
),

tree_places AS (               -- parent and children of a rank
    SELECT cluster, task, communicator, channel, rank, file, line, unnest(CAST(string_split(listed, ' ') AS INTEGER[])) AS other
    FROM topology.task_edges
    WHERE kind = 'nccl_tree'
),

both_ways AS (                 -- up to reduce, down to broadcast
    SELECT cluster, task, communicator, channel, rank AS src_rank, other AS dst_rank, file, line
    FROM tree_places
    WHERE other <> -1
    UNION ALL
    SELECT cluster, task, communicator, channel, other AS src_rank, rank AS dst_rank, file, line
    FROM tree_places
    WHERE other <> -1
),

planned AS (                   -- edges known from a ring or tree, each with its first line
    SELECT cluster, task, communicator, channel, src_rank, dst_rank, false AS is_second, 'ring' AS kind, evidence, file, line
    FROM topology.ring_edges
    UNION ALL
    SELECT
        cluster,
        task,
        communicator,
        channel,
        src_rank,
        dst_rank,
        false AS is_second,
        'tree' AS kind,
        'listed' AS evidence,
        min(file) AS file,
        arg_min(line, (file, line)) AS line
    FROM both_ways
    GROUP BY ALL
),

logged AS (                    -- a connection logged by one end or both; a line names the NIC of its writer only
    SELECT
        cluster,
        task,
        communicator,
        channel,
        src_rank,
        dst_rank,
        coalesce(connection = '1', false) AS is_second,
        bool_and(is_shared) AS is_shared,
        {{ only('nic_index', "direction = 'send' AND " ~ is_ib('transport')) }} AS src_index,
        {{ only('nic_index', "direction = 'receive' AND " ~ is_ib('transport')) }} AS dst_index,
        bool_and({{ is_ib('transport') }}) FILTER (WHERE direction = 'send') AS src_is_ib,
        bool_and({{ is_ib('transport') }}) FILTER (WHERE direction = 'receive') AS dst_is_ib,
        {{ only('pod', "direction = 'send'") }} AS src_pod,
        {{ only('pod', "direction = 'receive'") }} AS dst_pod,
        min(file) AS file,
        arg_min(line, (file, line)) AS line
    FROM topology.task_edges
    WHERE kind = 'nccl_edge'
    GROUP BY ALL
),

edges AS (                     -- a logged connection serves the planned edges over it, else the kind that it was opened for
    SELECT
        cluster,
        task,
        communicator,
        channel,
        src_rank,
        dst_rank,
        coalesce(p.kind, CASE WHEN is_second AND l.is_shared THEN 'p2p' ELSE 'unknown' END) AS kind,
        CASE WHEN l.file IS NOT NULL THEN 'log' ELSE p.evidence END AS evidence,
        coalesce(l.file, p.file) AS file,
        coalesce(l.line, p.line) AS line,
        l.src_index,
        l.dst_index,
        l.src_is_ib,
        l.dst_is_ib,
        l.src_pod,
        l.dst_pod
    FROM planned AS p
    FULL JOIN logged AS l USING (cluster, task, communicator, channel, src_rank, dst_rank, is_second)  -- grain, once
),

ends AS (                      -- a row for each end of an edge
    SELECT
        * EXCLUDE (src_index, dst_index, src_is_ib, dst_is_ib, src_pod, dst_pod),
        unnest(['src', 'dst']) AS side,
        unnest([src_rank, dst_rank]) AS rank,
        unnest([src_index, dst_index]) AS logged_index,
        unnest([src_is_ib, dst_is_ib]) AS is_ib,
        unnest([src_pod, dst_pod]) AS logged_pod
    FROM edges
),

placed AS (
    SELECT e.*, coalesce(e.logged_pod, m.pod) AS pod
    FROM ends AS e
    LEFT JOIN members AS m USING (cluster, task, communicator, rank)  -- grain, once
),

pod_hosts AS (                 -- pods grouped by host: several logs may belong to one host
    SELECT cluster, task, pod, min(host) AS host
    FROM topology.task_edges
    WHERE host IS NOT NULL
    GROUP BY ALL
    HAVING min(host) = max(host)
),

nics AS (
    SELECT cluster, task, pod, count(*) AS nics
    FROM topology.logged_ports
    GROUP BY ALL
),

blocks AS (                    -- ranks per pod, where all pods have the same number
    SELECT cluster, task, min(ranks) AS size
    FROM topology.logged_pods
    GROUP BY ALL
    HAVING min(ranks) = max(ranks)
),

located AS (                   -- with an even split of GPUs over NICs: with 8 GPUs and 4 NICs, two GPUs per NIC
    SELECT
        p.*,
        t.server,
        h.host,
        CASE WHEN w.is_world THEN (p.rank - t.first_rank) * n.nics // t.ranks END AS even_index,
        CASE WHEN w.is_world THEN p.src_rank // b.size <> p.dst_rank // b.size END AS leaves_block
    FROM placed AS p
    LEFT JOIN topology.logged_pods AS t USING (cluster, task, pod)  -- once
    LEFT JOIN pod_hosts AS h USING (cluster, task, pod)  -- once
    LEFT JOIN nics AS n USING (cluster, task, pod)  -- once
    LEFT JOIN worlds AS w USING (cluster, task, communicator)  -- once
    LEFT JOIN blocks AS b USING (cluster, task)  -- once
),

crossing AS (                  -- between servers; an edge without a connection line counts only if it is known to leave its server
    SELECT *
    FROM located
    WINDOW edge AS (PARTITION BY cluster, task, communicator, channel, kind, src_rank, dst_rank)
    QUALIFY
        (count(pod) OVER edge < 2 OR min(pod) OVER edge <> max(pod) OVER edge)
        AND (count(server) OVER edge < 2 OR min(server) OVER edge <> max(server) OVER edge)
        AND (count(host) OVER edge < 2 OR min(host) OVER edge <> max(host) OVER edge)
        AND (count(pod) OVER edge = 2 OR (evidence = 'log' AND count(pod) OVER edge = 1) OR leaves_block)
),

shared_out AS (                -- whether every logged NIC fits the even split
    SELECT cluster, task, bool_and(is_ib AND coalesce(logged_index = even_index, true)) AS is_even
    FROM crossing
    WHERE is_ib IS NOT NULL
    GROUP BY ALL
),

indexed AS (
    SELECT
        c.*,
        coalesce(c.logged_index, CASE WHEN o.is_even AND c.is_ib IS NULL THEN c.even_index END) AS hca_index
    FROM crossing AS c
    LEFT JOIN shared_out AS o USING (cluster, task)  -- once
),

wired AS (
    SELECT
        i.*,
        p.hca,
        p.switch,
        p.port,
        CASE WHEN p.hca IS NULL THEN NULL WHEN i.logged_index IS NOT NULL THEN p.evidence ELSE 'inferred:ring_pattern' END AS nic_evidence
    FROM indexed AS i
    LEFT JOIN topology.logged_ports AS p USING (cluster, task, pod, hca_index)  -- check of task_ports, once
)

SELECT
    cluster,
    task,
    communicator,
    channel,
    kind,
    src_rank,
    dst_rank,
    min(server) FILTER (WHERE side = 'src') AS src_server,
    min(hca) FILTER (WHERE side = 'src') AS src_hca,
    min(switch) FILTER (WHERE side = 'src') AS src_switch,
    min(port) FILTER (WHERE side = 'src') AS src_port,
    min(server) FILTER (WHERE side = 'dst') AS dst_server,
    min(hca) FILTER (WHERE side = 'dst') AS dst_hca,
    min(switch) FILTER (WHERE side = 'dst') AS dst_switch,
    min(port) FILTER (WHERE side = 'dst') AS dst_port,
    CASE WHEN count(switch) = 2 THEN min(switch) = max(switch) END AS same_leaf,
    evidence,
    min(nic_evidence) FILTER (WHERE side = 'src') AS src_evidence,
    min(nic_evidence) FILTER (WHERE side = 'dst') AS dst_evidence,
    file,
    line
FROM wired
GROUP BY ALL

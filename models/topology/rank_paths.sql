/* ---
about: 'Path of every edge between servers that a training task''s logs name, by a ring, a tree or a connection: rank, NIC and leaf port at both ends.'
grain: [cluster, task, communicator, channel, kind, src_rank, dst_rank]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  communicator: VARCHAR as in topology.task_communicators
  channel: INTEGER [1] channel
  kind: VARCHAR ring or tree (the edge is in a printed ring or tree), p2p (NCCL's connection 1, for sends and receives), unknown (another connection)
  src_rank: INTEGER [1] sending rank
  dst_rank: INTEGER [1] receiving rank
  src_server: VARCHAR server of the sending rank
  src_hca: VARCHAR NIC that the rank sends through; NULL where unknown, and where the connection uses neither InfiniBand nor RoCE
  src_switch: VARCHAR leaf of that NIC
  src_port: VARCHAR the leaf's port
  dst_server: VARCHAR server of the receiving rank
  dst_hca: VARCHAR NIC that the rank receives through; NULL where unknown
  dst_switch: VARCHAR leaf of that NIC
  dst_port: VARCHAR the leaf's port
  same_leaf: BOOLEAN true if both NICs are on one leaf; NULL where one is unknown
  evidence: VARCHAR evidence for the edge, log (a line of this connection), listed (read from a printed ring or tree) or inferred:ring_pattern
  src_evidence: VARCHAR evidence for the sending NIC, log (a line has its index, and a NIC list its name), inferred:nic_sheet_order (a line has its index, its name is by the order of the workbook) or inferred:ring_pattern (no line has it; GPUs are split evenly over NICs)
  dst_evidence: VARCHAR evidence for the receiving NIC, with the same values
  file: VARCHAR log with the line of the connection, else with the list that names the edge or that it was inferred from
  line: INTEGER [1] line of that log
checks:
  - kind in ('ring', 'tree', 'p2p', 'unknown')
  - evidence in ('log', 'listed', 'inferred:ring_pattern')
  - src_evidence in ('log', 'inferred:nic_sheet_order', 'inferred:ring_pattern') or src_evidence is null
  - dst_evidence in ('log', 'inferred:nic_sheet_order', 'inferred:ring_pattern') or dst_evidence is null
  - src_server <> dst_server or src_server is null or dst_server is null
sources: docs/metrics/tasks.md
--- */
WITH worlds AS (               -- communicators of all ranks of a task, taken to number ranks as pods do; block: ranks per pod, if all known pods have as many
    SELECT cluster, task, communicator, CASE WHEN min(ranks) = max(ranks) THEN min(ranks) END AS block
    FROM (SELECT DISTINCT cluster, task, communicator FROM topology.task_edges WHERE is_world)
    JOIN topology.logged_pods USING (cluster, task)  -- check of task_pods
    GROUP BY ALL
),

told AS (                      -- places of ranks: from lines about a rank, and from the numbering of a world
    SELECT cluster, task, communicator, rank, pod, true AS is_line
    FROM topology.task_communicators
    UNION
    SELECT cluster, task, communicator, own_rank AS rank, pod, true AS is_line
    FROM topology.task_edges
    UNION
    SELECT cluster, task, communicator, unnest(range(first_rank, first_rank + ranks)) AS rank, pod, false AS is_line
    FROM topology.logged_pods
    JOIN worlds USING (cluster, task)  -- check of task_pods
),

members AS (                   -- pod of each rank: as lines say where they agree, else by the numbering
    SELECT cluster, task, communicator, rank, coalesce({{ only('pod', 'is_line') }}, min(pod) FILTER (WHERE NOT is_line)) AS pod
    FROM told
    GROUP BY ALL
),

trees AS (                     -- both ways between a rank and its parent or child: up to reduce, down to broadcast
    SELECT cluster, task, communicator, channel, unnest([rank, other]) AS src_rank, unnest([other, rank]) AS dst_rank, file, line
    FROM topology.task_edges
    CROSS JOIN unnest(CAST(string_split(listed, ' ') AS INTEGER[])) AS t (other)  -- whole
    WHERE kind = 'nccl_tree' AND other <> -1
),

planned AS (                   -- edges known from a ring or tree, each with its first line
    SELECT cluster, task, communicator, channel, src_rank, dst_rank, false AS is_p2p, 'ring' AS kind, evidence, file, line
    FROM topology.ring_edges
    UNION ALL
    SELECT cluster, task, communicator, channel, src_rank, dst_rank, false, 'tree', 'listed', min(file), arg_min(line, (file, line))
    FROM trees
    GROUP BY ALL
),

logged AS (                    -- a connection over the network, logged by one end or both; its line names the NIC of the writer only: [sender's, receiver's]
    SELECT
        cluster, task, communicator, channel, src_rank, dst_rank,
        coalesce(connection = '1', is_shared) AS is_p2p,  -- before 2.14 no number is printed
        [{{ only('nic_index', "direction = 'send' AND is_ib") }}, {{ only('nic_index', "direction = 'receive' AND is_ib") }}] AS indexes,
        [bool_and(is_ib) FILTER (WHERE direction = 'send'), bool_and(is_ib) FILTER (WHERE direction = 'receive')] AS are_ib,
        [{{ only('pod', "direction = 'send'") }}, {{ only('pod', "direction = 'receive'") }}] AS pods,
        min(file) AS file,
        arg_min(line, (file, line)) AS line
    FROM (SELECT *, {{ is_ib('transport') }} AS is_ib FROM topology.task_edges WHERE kind = 'nccl_edge')
    GROUP BY ALL
),

ends AS (                      -- one row an end; a logged connection, if not for p2p, serves the ring and the tree with this edge
    SELECT
        cluster, task, communicator, channel, src_rank, dst_rank,
        coalesce(p.kind, if(is_p2p, 'p2p', 'unknown')) AS kind,
        CASE WHEN l.file IS NOT NULL THEN 'log' ELSE p.evidence END AS evidence,
        coalesce(l.file, p.file) AS file,
        coalesce(l.line, p.line) AS line,
        unnest(['src', 'dst']) AS side,
        unnest([src_rank, dst_rank]) AS rank,
        unnest(l.indexes) AS logged_index,
        unnest(l.are_ib) AS is_ib,
        unnest(l.pods) AS logged_pod
    FROM planned AS p
    FULL JOIN logged AS l USING (cluster, task, communicator, channel, src_rank, dst_rank, is_p2p)  -- grain, once
),

nics AS (
    SELECT cluster, task, pod, count(*) AS nics
    FROM topology.logged_ports
    GROUP BY ALL
),

placed AS (                    -- even_index: NIC of the rank if GPUs are split evenly, as two GPUs per NIC of 8 GPUs and 4 NICs
    SELECT
        e.*,
        coalesce(e.logged_pod, m.pod) AS pod,
        t.server,
        t.host,
        CASE WHEN w.communicator IS NOT NULL THEN (e.rank - t.first_rank) * n.nics // t.ranks END AS even_index,
        e.src_rank // w.block <> e.dst_rank // w.block AS leaves_block
    FROM ends AS e
    LEFT JOIN members AS m USING (cluster, task, communicator, rank)  -- grain, once
    LEFT JOIN worlds AS w USING (cluster, task, communicator)  -- once
    LEFT JOIN topology.logged_pods AS t  -- once
        ON t.cluster = e.cluster AND t.task = e.task AND t.pod = coalesce(e.logged_pod, m.pod)
    LEFT JOIN nics AS n ON n.cluster = t.cluster AND n.task = t.task AND n.pod = t.pod  -- once
),

crossing AS (                  -- between servers: ends share no known pod, server or host, and are in two pods, in two blocks, or one is known and the edge logged
    SELECT *
    FROM placed
    WINDOW edge AS (PARTITION BY cluster, task, communicator, channel, kind, src_rank, dst_rank)
    QUALIFY
        count(DISTINCT pod) OVER edge = count(pod) OVER edge
        AND count(DISTINCT server) OVER edge = count(server) OVER edge
        AND count(DISTINCT host) OVER edge = count(host) OVER edge
        AND (count(pod) OVER edge = 2 OR leaves_block OR (count(pod) OVER edge = 1 AND evidence = 'log'))
),

indexed AS (                   -- the NIC that a line names, else by the even split, if lines of worlds name NICs and each fits it
    SELECT
        *,
        bool_and(is_ib AND coalesce(logged_index = even_index, false)) FILTER (WHERE is_ib IS NOT NULL AND even_index IS NOT NULL)
            OVER (PARTITION BY cluster, task) AS is_even,
        coalesce(logged_index, CASE WHEN is_even AND is_ib IS NULL THEN even_index END) AS hca_index
    FROM crossing
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

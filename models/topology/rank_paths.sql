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

places AS (                    -- pod of each rank of a communicator, where lines agree
    SELECT cluster, task, communicator, rank, min(pod) AS pod
    FROM ranks_said
    GROUP BY cluster, task, communicator, rank
    HAVING min(pod) = max(pod)
),

worlds AS (
    SELECT DISTINCT cluster, task, communicator
    FROM topology.task_edges
    WHERE is_world
),

numbered AS (
    SELECT cluster, task, pod, unnest(range(first_rank, first_rank + ranks)) AS rank
    FROM topology.task_pods
    WHERE first_rank IS NOT NULL AND ranks IS NOT NULL
),

members AS (
    SELECT cluster, task, communicator, rank, pod
    FROM places
    UNION
    SELECT w.cluster, w.task, w.communicator, n.rank, n.pod
    FROM worlds AS w
    JOIN numbered AS n ON n.cluster = w.cluster AND n.task = w.task
    WHERE NOT EXISTS (
        SELECT 1 FROM places AS p
        WHERE p.cluster = w.cluster AND p.task = w.task AND p.communicator = w.communicator AND p.rank = n.rank
    )
),

tree_places AS (               -- parent and children of a rank
    SELECT cluster, task, communicator, channel, rank, file, line, CAST(other AS INTEGER) AS other
    FROM (
        SELECT cluster, task, communicator, channel, rank, file, line, unnest(string_split(listed, ' ')) AS other
        FROM topology.task_edges
        WHERE kind = 'nccl_tree'
    ) AS four
    WHERE other <> '-1'
),

printed AS (                   -- tree edges, one per direction: up to reduce, down to broadcast; each with its first line
    SELECT
        cluster,
        task,
        communicator,
        channel,
        src_rank,
        dst_rank,
        min(file) AS file,
        arg_min(line, struct_pack(a := file, b := line)) AS line
    FROM (
        SELECT cluster, task, communicator, channel, rank AS src_rank, other AS dst_rank, file, line
        FROM tree_places
        UNION ALL
        SELECT cluster, task, communicator, channel, other AS src_rank, rank AS dst_rank, file, line
        FROM tree_places
    ) AS both_ways
    GROUP BY cluster, task, communicator, channel, src_rank, dst_rank
),

planned AS (                   -- edges known from a ring or tree
    SELECT cluster, task, communicator, channel, 'ring' AS kind, src_rank, dst_rank, evidence, file, line
    FROM topology.ring_edges
    UNION ALL
    SELECT cluster, task, communicator, channel, 'tree' AS kind, src_rank, dst_rank, 'listed' AS evidence, file, line
    FROM printed
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
        arg_min(line, struct_pack(a := file, b := line)) AS line
    FROM topology.task_edges
    WHERE kind = 'nccl_edge'
    GROUP BY cluster, task, communicator, channel, src_rank, dst_rank, coalesce(connection = '1', false)
),

edges AS (                     -- a logged connection serves the planned edges over it, else the kind that it was opened for
    SELECT
        coalesce(p.cluster, l.cluster) AS cluster,
        coalesce(p.task, l.task) AS task,
        coalesce(p.communicator, l.communicator) AS communicator,
        coalesce(p.channel, l.channel) AS channel,
        coalesce(p.src_rank, l.src_rank) AS src_rank,
        coalesce(p.dst_rank, l.dst_rank) AS dst_rank,
        CASE
            WHEN p.kind IS NOT NULL THEN p.kind
            WHEN l.is_second AND l.is_shared THEN 'p2p'
            ELSE 'unknown'
        END AS kind,
        CASE WHEN l.src_rank IS NOT NULL THEN 'log' ELSE p.evidence END AS evidence,
        coalesce(l.file, p.file) AS file,
        coalesce(l.line, p.line) AS line,
        l.src_index,
        l.dst_index,
        l.src_is_ib,
        l.dst_is_ib,
        l.src_pod,
        l.dst_pod
    FROM planned AS p
    FULL JOIN logged AS l
        ON
            l.cluster = p.cluster
            AND l.task = p.task
            AND l.communicator = p.communicator
            AND l.channel = p.channel
            AND l.src_rank = p.src_rank
            AND l.dst_rank = p.dst_rank
            AND NOT l.is_second
),

blocks AS (                    -- ranks per pod, where all pods have the same number
    SELECT cluster, task, min(ranks) AS size
    FROM topology.task_pods
    GROUP BY cluster, task
    HAVING min(ranks) = max(ranks)
),

pod_hosts AS (                 -- pods grouped by host: several logs may belong to one host
    SELECT cluster, task, pod, min(host) AS host
    FROM topology.task_edges
    WHERE host IS NOT NULL
    GROUP BY cluster, task, pod
    HAVING min(host) = max(host)
),

placed AS (                    -- both ends with their pods; edges within one server are left out
    SELECT
        e.*,
        coalesce(e.src_pod, s.pod) AS from_pod,
        coalesce(e.dst_pod, d.pod) AS to_pod
    FROM edges AS e
    LEFT JOIN members AS s
        ON s.cluster = e.cluster AND s.task = e.task AND s.communicator = e.communicator AND s.rank = e.src_rank
    LEFT JOIN members AS d
        ON d.cluster = e.cluster AND d.task = e.task AND d.communicator = e.communicator AND d.rank = e.dst_rank
),

crossing AS (
    SELECT
        p.*,
        s.server AS src_server,
        d.server AS dst_server,
        CASE WHEN w.communicator IS NOT NULL THEN p.src_rank - s.first_rank END AS src_local,
        CASE WHEN w.communicator IS NOT NULL THEN p.dst_rank - d.first_rank END AS dst_local,
        s.ranks AS src_ranks,
        d.ranks AS dst_ranks
    FROM placed AS p
    LEFT JOIN topology.task_pods AS s ON s.cluster = p.cluster AND s.task = p.task AND s.pod = p.from_pod
    LEFT JOIN topology.task_pods AS d ON d.cluster = p.cluster AND d.task = p.task AND d.pod = p.to_pod
    LEFT JOIN pod_hosts AS sh ON sh.cluster = p.cluster AND sh.task = p.task AND sh.pod = p.from_pod
    LEFT JOIN pod_hosts AS dh ON dh.cluster = p.cluster AND dh.task = p.task AND dh.pod = p.to_pod
    LEFT JOIN worlds AS w ON w.cluster = p.cluster AND w.task = p.task AND w.communicator = p.communicator
    LEFT JOIN blocks AS b ON b.cluster = p.cluster AND b.task = p.task AND w.communicator IS NOT NULL
    WHERE
        coalesce(p.from_pod <> p.to_pod, true)
        AND coalesce(s.server <> d.server, true)
        AND coalesce(sh.host <> dh.host, true)
        -- an edge without a connection line counts only if it is known to leave its server
        AND (
            (p.evidence = 'log' AND coalesce(p.from_pod, p.to_pod) IS NOT NULL)
            OR (p.from_pod IS NOT NULL AND p.to_pod IS NOT NULL)
            OR p.src_rank // b.size <> p.dst_rank // b.size
        )
),

nics AS (
    SELECT cluster, task, pod, count(*) AS nics
    FROM topology.task_ports
    GROUP BY cluster, task, pod
),

shared_out AS (                -- if every logged NIC fits an even split of GPUs over NICs: with 8 GPUs and 4 NICs, two GPUs per NIC
    SELECT
        c.cluster,
        c.task,
        bool_and(
            coalesce(c.src_is_ib, true)
            AND coalesce(c.dst_is_ib, true)
            AND (c.src_index IS NULL OR c.src_local IS NULL OR c.src_index = c.src_local * s.nics // c.src_ranks)
            AND (c.dst_index IS NULL OR c.dst_local IS NULL OR c.dst_index = c.dst_local * d.nics // c.dst_ranks)
        ) AS is_even
    FROM crossing AS c
    LEFT JOIN nics AS s ON s.cluster = c.cluster AND s.task = c.task AND s.pod = c.from_pod
    LEFT JOIN nics AS d ON d.cluster = c.cluster AND d.task = c.task AND d.pod = c.to_pod
    WHERE c.src_is_ib IS NOT NULL OR c.dst_is_ib IS NOT NULL
    GROUP BY c.cluster, c.task
),

indexed AS (
    SELECT
        c.*,
        coalesce(c.src_index, CASE WHEN o.is_even AND c.src_is_ib IS NULL THEN c.src_local * s.nics // c.src_ranks END) AS from_index,
        coalesce(c.dst_index, CASE WHEN o.is_even AND c.dst_is_ib IS NULL THEN c.dst_local * d.nics // c.dst_ranks END) AS to_index
    FROM crossing AS c
    LEFT JOIN nics AS s ON s.cluster = c.cluster AND s.task = c.task AND s.pod = c.from_pod
    LEFT JOIN nics AS d ON d.cluster = c.cluster AND d.task = c.task AND d.pod = c.to_pod
    LEFT JOIN shared_out AS o ON o.cluster = c.cluster AND o.task = c.task
)

SELECT
    i.cluster,
    i.task,
    i.communicator,
    i.channel,
    i.kind,
    i.src_rank,
    i.dst_rank,
    i.src_server,
    s.hca AS src_hca,
    s.switch AS src_switch,
    s.port AS src_port,
    i.dst_server,
    d.hca AS dst_hca,
    d.switch AS dst_switch,
    d.port AS dst_port,
    s.switch = d.switch AS same_leaf,
    i.evidence,
    CASE WHEN s.hca IS NULL THEN NULL WHEN i.src_index IS NOT NULL THEN s.evidence ELSE 'inferred:ring_pattern' END AS src_evidence,
    CASE WHEN d.hca IS NULL THEN NULL WHEN i.dst_index IS NOT NULL THEN d.evidence ELSE 'inferred:ring_pattern' END AS dst_evidence,
    i.file,
    i.line
FROM indexed AS i
LEFT JOIN topology.task_ports AS s
    ON s.cluster = i.cluster AND s.task = i.task AND s.pod = i.from_pod AND s.hca_index = i.from_index
LEFT JOIN topology.task_ports AS d
    ON d.cluster = i.cluster AND d.task = i.task AND d.pod = i.to_pod AND d.hca_index = i.to_index

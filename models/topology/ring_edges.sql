/* ---
about: Edges of NCCL rings from the printed rank lists. A truncated list is completed where its pattern leaves one possibility.
grain: [cluster, task, communicator, channel, src_rank]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  communicator: VARCHAR as in topology.task_communicators
  channel: INTEGER [1] channel
  src_rank: INTEGER [1] sending rank
  dst_rank: INTEGER [1] receiving rank
  evidence: VARCHAR listed, or inferred:ring_pattern
  file: VARCHAR log with the printed list
  line: INTEGER [1] line of that log
checks:
  - evidence in ('listed', 'inferred:ring_pattern')
  - unique(cluster, task, communicator, channel, dst_rank)
  # inferred edges close a ring: every sending rank also receives
  - none: WITH closed AS (SELECT DISTINCT cluster, task, communicator, channel FROM this WHERE evidence = 'inferred:ring_pattern')
      SELECT e.* FROM this AS e SEMI JOIN closed USING (cluster, task, communicator, channel)
      ANTI JOIN this AS r ON r.cluster = e.cluster AND r.task = e.task AND r.communicator = e.communicator AND r.channel = e.channel AND r.dst_rank = e.src_rank
sources: docs/metrics/tasks.md
--- */
-- NCCL up to 2.22 prints 20 ranks of a ring. The rest is inferred only where the whole printed part repeats: every
-- local rank was seen twice or more, always with the same next local rank and the same step from server to server,
-- and continuing the pattern visits every rank once. docs/metrics/tasks.md has the rule with an example.
WITH lists AS (                -- the longest printed list of a ring, where the lists of all other processes are a prefix of it
    SELECT
        cluster,
        task,
        communicator,
        channel,
        bool_or(is_world) AS is_world,
        max(ranks) AS ranks,
        longest AS listed,
        arg_min(file, struct_pack(a := pod, b := segment)) FILTER (WHERE listed = longest) AS file,
        arg_min(line, struct_pack(a := pod, b := segment)) FILTER (WHERE listed = longest) AS line
    FROM (
        SELECT
            *,
            first_value(listed) OVER (
                PARTITION BY cluster, task, communicator, channel ORDER BY length(listed) DESC, listed
            ) AS longest
        FROM topology.task_edges
        WHERE kind = 'nccl_ring'
    ) AS printed
    GROUP BY cluster, task, communicator, channel, longest
    HAVING bool_and(starts_with(longest || ' ', listed || ' '))
),

places AS (
    SELECT *, array_length(string_split(listed, ' ')) AS printed
    FROM lists
),

numbered AS (
    SELECT cluster, task, communicator, channel, is_world, ranks, printed, listed, file, line, unnest(range(1, printed + 1)) AS place
    FROM places
),

members AS (
    SELECT *, CAST(split_part(listed, ' ', CAST(place AS INTEGER)) AS INTEGER) AS rank
    FROM numbered
),

sound AS (                     -- lists without a repeated rank or a rank outside the communicator
    SELECT cluster, task, communicator, channel
    FROM members
    GROUP BY cluster, task, communicator, channel
    HAVING count(*) = count(DISTINCT rank) AND (max(ranks) IS NULL OR (max(rank) < max(ranks) AND count(*) <= max(ranks)))
),

listed AS (                    -- a complete list ends with its first rank
    SELECT
        m.cluster,
        m.task,
        m.communicator,
        m.channel,
        m.is_world,
        m.ranks,
        m.printed,
        m.place,
        m.rank AS src_rank,
        n.rank AS dst_rank,
        m.file,
        m.line
    FROM members AS m
    JOIN sound AS s
        ON s.cluster = m.cluster AND s.task = m.task AND s.communicator = m.communicator AND s.channel = m.channel
    JOIN members AS n
        ON
            n.cluster = m.cluster
            AND n.task = m.task
            AND n.communicator = m.communicator
            AND n.channel = m.channel
            AND n.place = CASE WHEN m.place = m.printed AND m.printed = m.ranks THEN 1 ELSE m.place + 1 END
),

servers AS (                   -- tasks whose pods are known and have equal numbers of ranks
    SELECT cluster, task, min(ranks) AS size, count(*) AS servers
    FROM topology.task_pods
    GROUP BY cluster, task
    HAVING count(first_rank) = count(*) AND min(ranks) = max(ranks) AND count(DISTINCT first_rank) = count(*)
),

steps AS (                     -- per edge the next local rank, and the step in servers
    SELECT
        l.cluster,
        l.task,
        l.communicator,
        l.channel,
        s.size,
        s.servers,
        l.place,
        l.src_rank % s.size AS local_rank,
        l.dst_rank % s.size AS next_local,
        (l.dst_rank // s.size - l.src_rank // s.size + s.servers) % s.servers AS step
    FROM listed AS l
    JOIN servers AS s ON s.cluster = l.cluster AND s.task = l.task
    WHERE l.is_world AND l.printed < l.ranks AND l.ranks = s.size * s.servers
),

pattern AS (
    SELECT cluster, task, communicator, channel, size, servers, local_rank, min(next_local) AS next_local, min(step) AS step
    FROM steps
    GROUP BY cluster, task, communicator, channel, size, servers, local_rank
    HAVING count(*) >= 2 AND min(next_local) = max(next_local) AND min(step) = max(step)
),

one_round AS (                 -- the first edges, one per local rank, and the servers that they cross
    SELECT cluster, task, communicator, channel, count(DISTINCT local_rank) AS locals, sum(step) AS servers_on
    FROM steps
    WHERE place <= size
    GROUP BY cluster, task, communicator, channel
),

accepted AS (                  -- every local rank is known, one round visits all of them, and rounds close only at their start
    SELECT p.cluster, p.task, p.communicator, p.channel
    FROM pattern AS p
    JOIN one_round AS o
        ON o.cluster = p.cluster AND o.task = p.task AND o.communicator = p.communicator AND o.channel = p.channel
    GROUP BY p.cluster, p.task, p.communicator, p.channel
    HAVING
        count(*) = max(p.size)
        AND count(DISTINCT p.next_local) = max(p.size)
        AND max(o.locals) = max(p.size)
),

laps AS (
    SELECT cluster, task, communicator, channel, servers_on, unnest(range(1, servers)) AS lap, servers
    FROM (
        SELECT o.cluster, o.task, o.communicator, o.channel, o.servers_on, s.servers
        FROM one_round AS o
        JOIN servers AS s ON s.cluster = o.cluster AND s.task = o.task
    ) AS rounds
),

early AS (                     -- rings that would close before visiting every server
    SELECT DISTINCT cluster, task, communicator, channel
    FROM laps
    WHERE lap * servers_on % servers = 0
),

continued AS (
    SELECT
        p.cluster,
        p.task,
        p.communicator,
        p.channel,
        p.size,
        p.servers,
        p.local_rank,
        p.next_local,
        p.step,
        unnest(range(0, p.servers)) AS server
    FROM pattern AS p
    JOIN accepted AS a
        ON a.cluster = p.cluster AND a.task = p.task AND a.communicator = p.communicator AND a.channel = p.channel
    WHERE NOT EXISTS (
        SELECT 1 FROM early AS e
        WHERE e.cluster = p.cluster AND e.task = p.task AND e.communicator = p.communicator AND e.channel = p.channel
    )
),

inferred AS (
    SELECT
        c.cluster,
        c.task,
        c.communicator,
        c.channel,
        c.server * c.size + c.local_rank AS src_rank,
        (c.server + c.step) % c.servers * c.size + c.next_local AS dst_rank,
        l.file,
        l.line
    FROM continued AS c
    JOIN lists AS l
        ON l.cluster = c.cluster AND l.task = c.task AND l.communicator = c.communicator AND l.channel = c.channel
)

SELECT cluster, task, communicator, channel, src_rank, dst_rank, 'listed' AS evidence, file, line
FROM listed
UNION ALL
SELECT i.cluster, i.task, i.communicator, i.channel, i.src_rank, i.dst_rank, 'inferred:ring_pattern' AS evidence, i.file, i.line
FROM inferred AS i
WHERE NOT EXISTS (
    SELECT 1 FROM listed AS l
    WHERE
        l.cluster = i.cluster
        AND l.task = i.task
        AND l.communicator = i.communicator
        AND l.channel = i.channel
        AND l.src_rank = i.src_rank
)

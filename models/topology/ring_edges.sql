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
WITH lists AS (                -- the longest printed list of a ring
    SELECT
        cluster,
        task,
        communicator,
        channel,
        bool_or(is_world) AS is_world,
        max(ranks) AS ranks,
        arg_min(listed, (-length(listed), pod, segment)) AS longest,
        arg_min(file, (-length(listed), pod, segment)) AS file,
        arg_min(line, (-length(listed), pod, segment)) AS line,
        list(listed ORDER BY listed) AS printed
    FROM topology.task_edges
    WHERE kind = 'nccl_ring'
    GROUP BY ALL
),

rings AS (                     -- of which the lists of all other processes are the begin
    SELECT * EXCLUDE (longest, printed), CAST(string_split(longest, ' ') AS INTEGER[]) AS ring
    FROM lists
    WHERE array_length(list_filter(printed, LAMBDA one: NOT starts_with(longest || ' ', one || ' '))) = 0
),

places AS (                    -- without rings that repeat a rank or have one from outside the communicator
    SELECT *, array_length(ring) AS printed, unnest(range(1, array_length(ring) + 1)) AS place
    FROM rings
    WHERE
        list_unique(ring) = array_length(ring)
        AND coalesce(list_max(ring) < ranks AND array_length(ring) <= ranks, true)
),

listed AS (                    -- a complete list ends with its first rank
    SELECT
        * EXCLUDE (ring),
        ring[place] AS src_rank,
        CASE WHEN place < printed THEN ring[place + 1] WHEN printed = ranks THEN ring[1] END AS dst_rank
    FROM places
    WHERE place < printed OR printed = ranks
),

servers AS (                   -- tasks whose pods are known and have equal numbers of ranks
    SELECT cluster, task, min(ranks) AS size, count(*) AS servers
    FROM topology.logged_pods
    GROUP BY ALL
    HAVING count(first_rank) = count(*) AND min(ranks) = max(ranks) AND count(DISTINCT first_rank) = count(*)
),

steps AS (                     -- per edge the next local rank, and the step in servers
    SELECT
        cluster,
        task,
        communicator,
        channel,
        file,
        line,
        size,
        servers,
        place,
        src_rank % size AS local_rank,
        dst_rank % size AS next_local,
        (dst_rank // size - src_rank // size + servers) % servers AS step
    FROM listed
    JOIN servers USING (cluster, task)  -- filter
    WHERE is_world AND printed < ranks AND ranks = size * servers
),

rounds AS (                    -- the first edges, one per local rank, and the servers that they cross
    SELECT cluster, task, communicator, channel, count(DISTINCT local_rank) AS locals, CAST(sum(step) AS BIGINT) AS crossed
    FROM steps
    WHERE place <= size
    GROUP BY ALL
),

pattern AS (
    SELECT
        cluster,
        task,
        communicator,
        channel,
        file,
        line,
        size,
        servers,
        local_rank,
        min(next_local) AS next_local,
        min(step) AS step
    FROM steps
    GROUP BY ALL
    HAVING count(*) >= 2 AND min(next_local) = max(next_local) AND min(step) = max(step)
),

sound AS (                     -- where one round visits all local ranks, and the rounds all servers: no common divisor
    SELECT *
    FROM pattern
    JOIN rounds USING (cluster, task, communicator, channel)  -- check, filter
    WHERE locals = size AND gcd(crossed, servers) = 1
    QUALIFY
        count(*) OVER (PARTITION BY cluster, task, communicator, channel) = size
        AND count(DISTINCT next_local) OVER (PARTITION BY cluster, task, communicator, channel) = size
),

continued AS (
    SELECT *, unnest(range(servers)) AS server
    FROM sound
),

inferred AS (
    SELECT
        cluster,
        task,
        communicator,
        channel,
        server * size + local_rank AS src_rank,
        (server + step) % servers * size + next_local AS dst_rank,
        file,
        line
    FROM continued
)

SELECT cluster, task, communicator, channel, src_rank, dst_rank, 'listed' AS evidence, file, line
FROM listed
UNION ALL
SELECT cluster, task, communicator, channel, src_rank, dst_rank, 'inferred:ring_pattern' AS evidence, file, line
FROM inferred
ANTI JOIN listed USING (cluster, task, communicator, channel, src_rank)  -- check, grain

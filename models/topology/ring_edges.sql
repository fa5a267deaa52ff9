/* ---
about: Edges of NCCL rings from the printed rank lists. A truncated list is continued as it begins, where that gives one ring of all ranks.
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
-- NCCL up to 2.22 prints 20 ranks of a ring; later ones print all. The rest is inferred only where the whole printed part
-- repeats: every local rank (rank within its pod) was seen twice or more, always with the same next local rank and the same
-- step from pod to pod (modulo pods), and to go on like this visits every rank once. That it does go on is an assumption:
-- the evidence of these edges says so. docs/metrics/tasks.md has the rule with an example.
WITH lists AS (                -- the longest printed list of a ring, and all lists
    SELECT
        cluster, task, communicator, channel,
        bool_or(is_world) AS is_world,
        max(ranks) AS ranks,
        arg_min(listed, (-length(listed), pod, segment)) AS longest,
        arg_min(file, (-length(listed), pod, segment)) AS file,
        arg_min(line, (-length(listed), pod, segment)) AS line,
        list(listed ORDER BY listed) AS all_lists
    FROM topology.task_edges
    WHERE kind = 'nccl_ring'
    GROUP BY ALL
),

rings AS (                     -- where every other list is a prefix of the longest, without a rank twice or from outside the communicator
    SELECT
        * EXCLUDE (longest, all_lists),
        CAST(string_split(longest, ' ') AS INTEGER[]) AS ring,
        array_length(ring) AS printed
    FROM lists
    WHERE
        array_length(list_filter(all_lists, LAMBDA one: NOT starts_with(longest || ' ', one || ' '))) = 0
        AND printed > 1
        AND list_unique(ring) = printed
        AND coalesce(list_max(ring) < ranks AND printed <= ranks, true)
),

listed AS (                    -- after the last rank of a complete list comes its first
    SELECT
        r.* EXCLUDE (ring),
        r.ring[p.place] AS src_rank,
        CASE WHEN p.place < r.printed THEN r.ring[p.place + 1] ELSE r.ring[1] END AS dst_rank
    FROM rings AS r
    CROSS JOIN unnest(range(1, r.printed + 1)) AS p (place)  -- whole
    WHERE p.place < r.printed OR r.printed = r.ranks
),

pods AS (                      -- of tasks whose pods have equal numbers of ranks, one after the other
    SELECT cluster, task, min(ranks) AS size, count(*) AS pods
    FROM topology.logged_pods
    GROUP BY ALL
    HAVING count(DISTINCT first_rank) = count(*) AND min(ranks) = max(ranks) AND count(ranks) = count(*) AND bool_and(first_rank % ranks = 0)
),

pattern AS (                   -- the next local rank of each local rank, and the step in pods, where seen twice and always the same
    SELECT
        cluster, task, communicator, channel, file, line, size, pods,
        src_rank % size AS local_rank,
        min(dst_rank % size) AS next_local,
        min((dst_rank // size - src_rank // size + pods) % pods) AS step
    FROM listed
    JOIN pods USING (cluster, task)  -- filter
    WHERE is_world AND printed < ranks AND ranks = size * pods
    GROUP BY ALL
    HAVING
        count(*) >= 2
        AND max(dst_rank % size) = next_local
        AND max((dst_rank // size - src_rank // size + pods) % pods) = step
),

sound AS (                     -- of all local ranks, so one round visits each; rounds visit all pods if the steps of one and their number have no common divisor
    SELECT *
    FROM pattern
    WINDOW of_ring AS (PARTITION BY cluster, task, communicator, channel)
    QUALIFY count(*) OVER of_ring = size AND gcd(CAST(sum(step) OVER of_ring AS BIGINT), pods) = 1
)

SELECT cluster, task, communicator, channel, src_rank, dst_rank, 'listed' AS evidence, file, line
FROM listed
UNION ALL
SELECT
    s.cluster, s.task, s.communicator, s.channel,
    n.pod * s.size + s.local_rank AS src_rank,
    (n.pod + s.step) % s.pods * s.size + s.next_local AS dst_rank,
    'inferred:ring_pattern' AS evidence, s.file, s.line
FROM sound AS s
CROSS JOIN unnest(range(s.pods)) AS n (pod)  -- whole
ANTI JOIN listed AS l  -- check, grain
    ON
        l.cluster = s.cluster AND l.task = s.task AND l.communicator = s.communicator AND l.channel = s.channel
        AND l.src_rank = n.pod * s.size + s.local_rank

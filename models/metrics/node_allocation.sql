/* ---
about: GPUs that jobs hold on a node, from one change to the next; of a trace that does not say where jobs ran, on all nodes together. A job holds its GPUs from start to end.
grain: [trace, cluster, node, begin_seconds]
columns:
  trace: VARCHAR the trace
  cluster: VARCHAR the cluster
  node: VARCHAR the node; all for the nodes together, where the trace does not say where jobs ran
  gpu_model: VARCHAR model of the node's GPUs; all for the nodes together
  begin_seconds: BIGINT [s] when it begins, from the origin of the trace; since 1970 where it has clock times
  end_seconds: BIGINT [s] when the next change comes; NULL after the last one
  node_gpus: BIGINT [1] GPUs of the node
  gpus: DECIMAL(20, 3) [1] GPUs that jobs hold
  whole_gpus: DECIMAL(20, 3) [1] of these, GPUs of jobs with one or more
  sharing_jobs: BIGINT [1] jobs with a part of one GPU
  allocation_share: DOUBLE [1] gpus / node_gpus
dimensions: [trace, cluster, node, gpu_model]
measures:
  others: none
checks:
  - gpus >= whole_gpus
  - sharing_jobs >= 0
  - end_seconds > begin_seconds or end_seconds is null
sources: docs/metrics/capacity.md
--- */
WITH nodes AS (
    SELECT trace, cluster, node, gpu_model, num_gpus AS node_gpus
    FROM metrics.nodes
    WHERE num_gpus > 0
    UNION ALL
    SELECT trace, cluster, 'all' AS node, 'all' AS gpu_model, CAST(sum(num_gpus) AS BIGINT) AS node_gpus
    FROM metrics.nodes
    GROUP BY trace, cluster
),

placed AS (                    -- traces that say where jobs ran
    SELECT trace, cluster, bool_or(node IS NOT NULL) AS is_placed
    FROM metrics.jobs
    GROUP BY trace, cluster
),

timed AS (
    SELECT
        j.trace,
        j.cluster,
        CASE WHEN p.is_placed THEN j.node ELSE 'all' END AS node,
        j.num_gpus,
        coalesce(epoch_us(j.start_utc) // 1000000, j.start_seconds) AS begins,
        coalesce(epoch_us(j.end_utc) // 1000000, j.end_seconds) AS written_end
    FROM metrics.jobs AS j
    JOIN placed AS p USING (trace, cluster)
    WHERE j.num_gpus > 0 AND (j.start_utc IS NOT NULL OR j.start_seconds IS NOT NULL)
),

closed AS (
    SELECT *, coalesce(written_end, max(written_end) OVER (PARTITION BY trace, cluster)) AS ends
    FROM timed
),

events AS (
    SELECT
        trace,
        cluster,
        node,
        unnest([begins, ends]) AS second,
        unnest([1, -1]) * num_gpus AS gpus,
        unnest([1, -1]) * CASE WHEN num_gpus >= 1 THEN num_gpus ELSE 0 END AS whole_gpus,
        unnest([1, -1]) * CASE WHEN num_gpus < 1 THEN 1 ELSE 0 END AS sharing_jobs
    FROM closed
    WHERE ends > begins
),

changes AS (
    SELECT
        trace,
        cluster,
        node,
        second,
        sum(gpus) AS gpus,
        sum(whole_gpus) AS whole_gpus,
        sum(sharing_jobs) AS sharing_jobs
    FROM events
    GROUP BY ALL
)

SELECT
    c.trace,
    c.cluster,
    c.node,
    n.gpu_model,
    c.second AS begin_seconds,
    lead(c.second) OVER changes AS end_seconds,
    n.node_gpus,
    sum(c.gpus) OVER changes AS gpus,
    sum(c.whole_gpus) OVER changes AS whole_gpus,
    sum(c.sharing_jobs) OVER changes AS sharing_jobs,
    sum(c.gpus) OVER changes / n.node_gpus AS allocation_share
FROM changes AS c
JOIN nodes AS n USING (trace, cluster, node)
WINDOW changes AS (PARTITION BY c.trace, c.cluster, c.node ORDER BY c.second)

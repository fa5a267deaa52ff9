/* ---
about: 'Free GPUs by model, from one change to the next: whole ones, and fragments, which are what jobs with a part of a GPU leave of it. Which jobs share a GPU is not published, so whole free GPUs have bounds: packed as tightly as can be, and each such job on a GPU of its own.'
grain: [trace, cluster, gpu_model, begin_seconds]
columns:
  trace: VARCHAR the trace
  cluster: VARCHAR the cluster
  gpu_model: VARCHAR model of the GPUs; all where the trace does not say where jobs ran
  begin_seconds: BIGINT [s] when it begins, from the origin of the trace; since 1970 where it has clock times
  end_seconds: BIGINT [s] when the next change comes; NULL after the last one
  gpus: BIGINT [1] GPUs of this model
  free_gpus: DECIMAL(20, 3) [1] GPUs less what jobs hold; negative where jobs hold more than there is
  whole_gpus_min: BIGINT [1] whole free GPUs if each job with a part of a GPU has one to itself
  whole_gpus_max: BIGINT [1] whole free GPUs if these jobs share as few GPUs of their node as they fit on
  fragment_gpus_min: DECIMAL(20, 3) [1] free_gpus - whole_gpus_max
  fragment_gpus_max: DECIMAL(20, 3) [1] free_gpus - whole_gpus_min
dimensions: [trace, cluster, gpu_model]
measures:
  others: none
checks:
  - whole_gpus_min <= whole_gpus_max
  - end_seconds > begin_seconds or end_seconds is null
sources: docs/metrics/capacity.md
--- */
WITH sizes AS (
    SELECT trace, cluster, gpu_model, CAST(sum(num_gpus) AS BIGINT) AS gpus
    FROM metrics.nodes
    WHERE num_gpus > 0
    GROUP BY ALL
    UNION ALL
    SELECT trace, cluster, 'all' AS gpu_model, CAST(sum(num_gpus) AS BIGINT) AS gpus
    FROM metrics.nodes
    GROUP BY ALL
),

taken AS (                     -- whole GPUs that no other job can have, at least and at most
    SELECT
        *,
        ceil(gpus) AS least,
        ceil(whole_gpus) + sharing_jobs AS most
    FROM metrics.node_allocation
),

steps AS (
    SELECT
        trace,
        cluster,
        gpu_model,
        begin_seconds,
        gpus - lag(gpus, 1, 0) OVER nodes AS gpus,
        least - lag(least, 1, 0) OVER nodes AS least,
        most - lag(most, 1, 0) OVER nodes AS most
    FROM taken
    WINDOW nodes AS (PARTITION BY trace, cluster, node ORDER BY begin_seconds)
),

changes AS (
    SELECT
        trace,
        cluster,
        gpu_model,
        begin_seconds,
        sum(gpus) AS gpus,
        sum(least) AS least,
        sum(most) AS most
    FROM steps
    GROUP BY ALL
),

held AS (
    SELECT
        c.trace,
        c.cluster,
        c.gpu_model,
        c.begin_seconds,
        lead(c.begin_seconds) OVER models AS end_seconds,
        s.gpus,
        s.gpus - sum(c.gpus) OVER models AS free_gpus,
        s.gpus - sum(c.most) OVER models AS whole_gpus_min,
        s.gpus - sum(c.least) OVER models AS whole_gpus_max
    FROM changes AS c
    JOIN sizes AS s USING (trace, cluster, gpu_model)
    WINDOW models AS (PARTITION BY c.trace, c.cluster, c.gpu_model ORDER BY c.begin_seconds)
)

SELECT
    trace,
    cluster,
    gpu_model,
    begin_seconds,
    end_seconds,
    gpus,
    free_gpus,
    CAST(round(greatest(whole_gpus_min, 0)) AS BIGINT) AS whole_gpus_min,
    CAST(round(greatest(whole_gpus_max, 0)) AS BIGINT) AS whole_gpus_max,
    free_gpus - greatest(whole_gpus_max, 0) AS fragment_gpus_min,
    free_gpus - greatest(whole_gpus_min, 0) AS fragment_gpus_max
FROM held

/* ---
about: 'Published totals of job traces (`totals` of data/traces) beside our values, which a check compares. Of a trace with less than half of a total, only a part is loaded, so that nothing is compared.'
grain: [trace, quantity]
columns:
  trace: VARCHAR the trace, by the name of its mapping
  source: VARCHAR title of the trace
  place: VARCHAR place of the publication
  quantity: 'VARCHAR jobs, clusters, gpu_seconds or gpu_hours of the default list of jobs; nodes or gpus of the default list of nodes'
  published_text: VARCHAR the published total as written
  published_value: DOUBLE the published total
  tolerance: DOUBLE largest difference at which our value still counts as equal
  our_value: DOUBLE the same total of the loaded files; NULL if it is less than half of the published one
checks:
  - warn: abs(our_value - published_value) <= tolerance or our_value is null
    says: "{source}: {published_text} {quantity} are published ({place}), the loaded files have {our_value:,.0f}"
sources: docs/traces.md
--- */
WITH jobs AS (
    SELECT
        trace,
        count(*)::DOUBLE AS jobs,
        count(DISTINCT cluster)::DOUBLE AS clusters,
        sum(gpu_seconds)::DOUBLE AS gpu_seconds,
        sum(gpu_seconds)::DOUBLE / 3600 AS gpu_hours
    FROM staging.trace_jobs
    WHERE variant = 'default'
    GROUP BY trace
),

nodes AS (
    SELECT trace, count(*)::DOUBLE AS nodes, sum(num_gpus)::DOUBLE AS gpus
    FROM staging.trace_nodes
    WHERE variant = 'default'
    GROUP BY trace
),

counted AS (
    SELECT trace, quantity, value
    FROM jobs UNPIVOT (value FOR quantity IN (jobs, clusters, gpu_seconds, gpu_hours))
    UNION ALL
    SELECT trace, quantity, value
    FROM nodes UNPIVOT (value FOR quantity IN (nodes, gpus))
)

SELECT
    t.trace,
    t.source,
    t.place,
    t.quantity,
    t.published_text,
    CAST(t.published_text AS DOUBLE) AS published_value,
    t.tolerance,
    CASE WHEN c.value >= published_value / 2 THEN c.value END AS our_value
FROM ({{ mapped_totals() }}) AS t
LEFT JOIN counted AS c USING (trace, quantity)

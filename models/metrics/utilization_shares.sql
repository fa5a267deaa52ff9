/* ---
about: Shares of samples up to a value that means something, above all those of idle GPUs and NICs, in the wide files and in the published distributions.
partition: file_group
grain: [cluster, metric, origin, threshold]
columns:
  file_group: VARCHAR the files that the share is of
  cluster: VARCHAR seren, kalos or philly
  metric: VARCHAR what is measured
  unit: VARCHAR unit of the threshold
  threshold: DOUBLE the value, in that unit
  meaning: 'VARCHAR what a sample up to it is: idle, or another word of reference.utilization_thresholds'
  figure: VARCHAR the figure that draws the published series; NULL where none does
  origin: VARCHAR measured, of the wide files; or the published series, as file and number
  at_most_share: DOUBLE [1] samples of the threshold or less
  over_share: DOUBLE [1] samples above it
dimensions: [cluster, metric, unit, threshold, meaning, origin]
measures:
  at_most_share, over_share: none, shown in %
checks:
  - at_most_share between 0 and 1
sources: docs/metrics/utilization.md
--- */
WITH published AS (            -- many points are equal: the share up to a value is that of the last one
    SELECT
        p.file_group,
        p.cluster,
        p.metric,
        t.unit,
        t.threshold,
        t.meaning,
        p.figure,
        concat(p.file, ' ', p.series) AS origin,
        coalesce(max(p.percent) FILTER (WHERE p.value <= t.threshold), 0) / 100 AS at_most_share
    FROM staging.published_points AS p
    JOIN reference.utilization_thresholds AS t USING (metric, unit)
    GROUP BY p.file_group, p.cluster, p.metric, t.unit, t.threshold, t.meaning, p.figure, p.file, p.series
),

measured AS (
    SELECT
        v.file_group,
        v.cluster,
        v.metric,
        t.unit,
        t.threshold,
        t.meaning,
        'measured' AS origin,
        coalesce(sum(v.samples) FILTER (WHERE v.value <= t.threshold), 0) / sum(v.samples) AS at_most_share
    FROM staging.utilization_values AS v
    JOIN reference.utilization_metrics AS m USING (metric)
    JOIN reference.utilization_thresholds AS t ON t.metric = v.metric AND t.unit = m.unit
    WHERE v.value IS NOT NULL
    GROUP BY ALL
),

shares AS (
    SELECT * FROM published
    UNION ALL BY NAME
    SELECT * FROM measured
)

SELECT *, 1 - at_most_share AS over_share
FROM shares

/* ---
about: Shares of samples up to a threshold, mainly those of idle GPUs and NICs, in the wide files and in the published distributions.
partition: file_group
grain: [cluster, metric, origin, threshold]
columns:
  file_group: VARCHAR group of the files with the samples
  cluster: VARCHAR seren, kalos or philly
  metric: VARCHAR name of the metric
  unit: VARCHAR unit of the threshold
  threshold: DOUBLE the threshold, in that unit
  meaning: 'VARCHAR meaning of a sample up to the threshold: idle, or another word of reference.utilization_thresholds'
  figure: VARCHAR the published figure that draws the series; NULL where no figure does
  origin: VARCHAR measured (from the wide files), or the published series as file and number
  at_most_share: DOUBLE [1] share of the samples at or below the threshold
  over_share: DOUBLE [1] share of the samples above the threshold
dimensions: [cluster, metric, unit, threshold, meaning, origin]
measures:
  at_most_share, over_share: none, shown in %
checks:
  - at_most_share between 0 and 1
sources: docs/metrics/utilization.md
--- */
WITH published AS (            -- many points are equal: the share up to a value is that of the last equal point
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
        CAST(NULL AS VARCHAR) AS figure,
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

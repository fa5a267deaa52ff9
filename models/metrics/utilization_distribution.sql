/* ---
about: Distributions of utilization, power and temperature in a cluster, over all servers or GPUs and all times, measured from the wide files, and as published in pickles. Two published series of the same cluster and metric are both listed, with their largest difference.
partition: file_group
grain: [file_group, origin]
columns:
  file_group: VARCHAR cluster and metric; the group of the pickle files
  cluster: VARCHAR seren, kalos or philly
  metric: VARCHAR name of the metric
  unit: VARCHAR unit of the values; NULL for an unknown metric
  origin: VARCHAR measured (from the wide files), or the published series as file and number
  figure: VARCHAR the published figure that draws the series; NULL where no figure does
  samples: BIGINT [1] samples, without empty cells; NULL for a published series
  points: BIGINT [1] points of a published curve
  min_value: DOUBLE the smallest sample or point
  p01: DOUBLE 1st percentile
  p05: DOUBLE 5th percentile
  p10: DOUBLE 10th percentile
  p25: DOUBLE first quartile
  p50: DOUBLE median
  p75: DOUBLE third quartile
  p90: DOUBLE 90th percentile
  p95: DOUBLE 95th percentile
  p99: DOUBLE 99th percentile
  max_value: DOUBLE the largest sample or point
  mean: DOUBLE mean of the samples, each rounded to a millionth; of a published curve that of its points, which is close to it
  zero_share: DOUBLE [1] share of the samples that are 0; of a published curve, 0 or less
  largest_difference: DOUBLE largest difference of a point from the same point of another series of this cluster and metric; NULL where there is no other series
  differs_from: VARCHAR[] other series that it differs from, as file and number
dimensions: [cluster, metric, unit, origin]
measures:
  samples: sum except over metric
  points: none
  min_value: min
  max_value: max
  zero_share: none, shown in %
  others: none
checks:
  - min_value <= p50 and p50 <= max_value
  - zero_share between 0 and 1
sources: docs/metrics/utilization.md
--- */
WITH counted AS (
    SELECT file_group, cluster, metric, value, sum(samples)::BIGINT AS samples
    FROM staging.utilization_values
    WHERE value IS NOT NULL
    GROUP BY ALL
),

ranked AS (                    -- values in order, each with the samples or points up to it; n is their number
    SELECT
        c.file_group,
        c.cluster,
        c.metric,
        m.unit,
        'measured' AS origin,
        NULL AS figure,
        c.value,
        c.samples,
        CASE WHEN c.value = 0 THEN c.samples / (sum(c.samples) OVER whole) END AS zero_share,
        sum(c.samples) OVER (whole ORDER BY c.value) AS until,
        sum(c.samples) OVER whole AS n
    FROM counted AS c
    LEFT JOIN reference.utilization_metrics AS m USING (metric)
    WINDOW whole AS (PARTITION BY c.file_group)
    UNION ALL
    SELECT
        file_group,
        cluster,
        metric,
        unit,
        concat(file, ' ', series) AS origin,
        figure,
        value,
        1 AS samples,
        -- many points are equal: the share up to a value is that of the last equal point
        CASE WHEN value <= 0 THEN percent / 100 END AS zero_share,
        point AS until,
        count(*) OVER (PARTITION BY file, series) AS n
    FROM staging.published_points
),

quantiles AS (
    SELECT
        file_group,
        cluster,
        metric,
        unit,
        origin,
        figure,
        max(n) FILTER (WHERE origin = 'measured') AS samples,
        max(n) FILTER (WHERE origin <> 'measured') AS points,
        min(value) AS min_value,
        {{ quantile_of_counts('value', 10) }} AS p01,
        {{ quantile_of_counts('value', 50) }} AS p05,
        {{ quantile_of_counts('value', 100) }} AS p10,
        {{ quantile_of_counts('value', 250) }} AS p25,
        {{ quantile_of_counts('value', 500) }} AS p50,
        {{ quantile_of_counts('value', 750) }} AS p75,
        {{ quantile_of_counts('value', 900) }} AS p90,
        {{ quantile_of_counts('value', 950) }} AS p95,
        {{ quantile_of_counts('value', 990) }} AS p99,
        max(value) AS max_value,
        sum(value::DECIMAL(18, 6) * samples)::DOUBLE / max(n) AS mean,
        coalesce(max(zero_share), 0) AS zero_share
    FROM ranked
    GROUP BY ALL
),

apart AS (                     -- published series of the same cluster and metric, compared point by point
    SELECT
        a.file_group,
        concat(a.file, ' ', a.series) AS origin,
        concat(b.file, ' ', b.series) AS other,
        max(abs(a.value - b.value)) AS difference
    FROM staging.published_points AS a
    JOIN staging.published_points AS b USING (cluster, metric, point)
    WHERE b.file <> a.file OR b.series <> a.series
    GROUP BY ALL
),

compared AS (
    SELECT
        file_group,
        origin,
        max(difference) AS largest_difference,
        list(other ORDER BY other) FILTER (WHERE difference > 0) AS differs_from
    FROM apart
    GROUP BY ALL
)

SELECT q.*, c.largest_difference, coalesce(c.differs_from, []) AS differs_from
FROM quantiles AS q
LEFT JOIN compared AS c USING (file_group, origin)

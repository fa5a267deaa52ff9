/* ---
about: Distributions that were published as pickles, one row per series. Two files with the same cluster and metric are both listed, with their largest difference.
partition: file_group
grain: [file, series]
columns:
  file_group: VARCHAR group of the pickle files
  cluster: VARCHAR seren, kalos or philly
  metric: VARCHAR name of the metric
  unit: VARCHAR unit of the quantiles
  file: VARCHAR name of the pickle
  series: BIGINT [1] the pair of arrays in the file, from 1
  figure: VARCHAR the published figure that draws the series; NULL where no figure does
  points: BIGINT [1] points of the curve
  min_value: DOUBLE the smallest point
  p01: DOUBLE 1st percentile
  p05: DOUBLE 5th percentile
  p10: DOUBLE 10th percentile
  p25: DOUBLE first quartile
  p50: DOUBLE median
  p75: DOUBLE third quartile
  p90: DOUBLE 90th percentile
  p95: DOUBLE 95th percentile
  p99: DOUBLE 99th percentile
  max_value: DOUBLE the largest point
  mean_of_points: DOUBLE mean of the points, which is close to the mean of the samples
  zero_share: DOUBLE [1] share of the samples that are 0 or less
  largest_difference: DOUBLE largest difference of a point from the same point of another series of this cluster and metric; NULL where there is no other series
  differs_from: VARCHAR[] other series that it differs from, as file and number
dimensions: [cluster, metric, unit, file, series]
measures:
  points: sum
  min_value: min
  max_value: max
  zero_share: none, shown in %
  others: none
checks:
  - zero_share between 0 and 1
sources: docs/metrics/utilization.md
--- */
WITH ranked AS (
    SELECT
        *,
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
        file,
        series,
        figure,
        max(n) AS points,
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
        CAST(sum(CAST(value AS DECIMAL(18, 6))) AS DOUBLE) / max(n) AS mean_of_points,
        -- many points are equal: the share up to a value is that of the last equal point
        coalesce(max(percent) FILTER (WHERE value <= 0), 0) / 100 AS zero_share
    FROM ranked
    GROUP BY ALL
),

apart AS (                     -- series of the same cluster and metric, compared point by point
    SELECT
        a.file,
        a.series,
        concat(b.file, ' ', b.series) AS other,
        max(abs(a.value - b.value)) AS difference
    FROM staging.published_points AS a
    JOIN staging.published_points AS b
        ON b.cluster = a.cluster AND b.metric = a.metric AND b.point = a.point
        AND (b.file <> a.file OR b.series <> a.series)
    GROUP BY a.file, a.series, b.file, b.series
),

compared AS (
    SELECT
        file,
        series,
        max(difference) AS largest_difference,
        list(other ORDER BY other) FILTER (WHERE difference > 0) AS differs_from
    FROM apart
    GROUP BY ALL
)

SELECT
    q.*,
    c.largest_difference,
    coalesce(c.differs_from, []) AS differs_from
FROM quantiles AS q
LEFT JOIN compared AS c USING (file, series)

/* ---
about: Distribution of a utilization metric in a cluster, over all servers or GPUs and all times.
partition: file_group
grain: [cluster, metric]
columns:
  file_group: VARCHAR cluster and metric
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  unit: VARCHAR unit of the values, by reference.utilization_metrics; NULL for an unknown metric
  samples: BIGINT [1] samples, without empty cells
  min_value: DOUBLE the smallest sample
  p01: DOUBLE 1st percentile
  p05: DOUBLE 5th percentile
  p10: DOUBLE 10th percentile
  p25: DOUBLE first quartile
  p50: DOUBLE median
  p75: DOUBLE third quartile
  p90: DOUBLE 90th percentile
  p95: DOUBLE 95th percentile
  p99: DOUBLE 99th percentile
  max_value: DOUBLE the largest sample
  mean: DOUBLE mean of the samples, each rounded to a millionth
  zero_share: DOUBLE [1] share of the samples that are 0
dimensions: [cluster, metric, unit]
measures:
  samples: sum except over metric
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
    SELECT file_group, cluster, metric, value, CAST(sum(samples) AS BIGINT) AS samples
    FROM staging.utilization_values
    WHERE value IS NOT NULL
    GROUP BY ALL
),

ranked AS (
    SELECT
        *,
        sum(samples) OVER (PARTITION BY file_group ORDER BY value) AS until,
        sum(samples) OVER (PARTITION BY file_group) AS n
    FROM counted
)

SELECT
    r.file_group,
    r.cluster,
    r.metric,
    m.unit,
    max(r.n) AS samples,
    min(r.value) AS min_value,
    {{ quantile_of_counts('value', 10) }} AS p01,
    {{ quantile_of_counts('value', 50) }} AS p05,
    {{ quantile_of_counts('value', 100) }} AS p10,
    {{ quantile_of_counts('value', 250) }} AS p25,
    {{ quantile_of_counts('value', 500) }} AS p50,
    {{ quantile_of_counts('value', 750) }} AS p75,
    {{ quantile_of_counts('value', 900) }} AS p90,
    {{ quantile_of_counts('value', 950) }} AS p95,
    {{ quantile_of_counts('value', 990) }} AS p99,
    max(r.value) AS max_value,
    CAST(sum(CAST(value AS DECIMAL(18, 6)) * samples) AS DOUBLE) / max(n) AS mean,
    coalesce(sum(samples) FILTER (WHERE value = 0), 0) / max(n) AS zero_share
FROM ranked AS r
LEFT JOIN reference.utilization_metrics AS m USING (metric)
GROUP BY ALL

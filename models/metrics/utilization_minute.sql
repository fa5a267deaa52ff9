/* ---
about: 'A utilization metric of a cluster over time: mean and quartiles over all servers or GPUs, per minute.'
partition: file_group
grain: [cluster, metric, minute_utc]
kernel: utilization_minutes
columns:
  file_group: VARCHAR cluster and metric
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  minute_utc: TIMESTAMP start of the minute, UTC; a minute without a sample has no row
  samples: BIGINT [1] samples, without empty cells
  zero_samples: BIGINT [1] samples that are 0
  mean: DOUBLE mean of the samples, rounded to a millionth
  p25: DOUBLE first quartile
  p50: DOUBLE median
  p75: DOUBLE third quartile
  min_value: DOUBLE the smallest sample
  max_value: DOUBLE the largest sample
time: minute_utc
measures:
  samples, zero_samples: sum except over metric
  min_value: min
  max_value: max
  others: none
checks:
  - samples > 0 and zero_samples between 0 and samples
  - none: SELECT m.n FROM (SELECT sum(samples) AS n FROM this) AS m, (SELECT sum(samples) AS n FROM staging.utilization_values WHERE value IS NOT NULL) AS v WHERE m.n <> v.n
  - none: SELECT minute_utc FROM this EXCEPT SELECT date_trunc('minute', time_utc) FROM staging.utilization_rows WHERE NOT is_covered
  - min_value <= p25 and p25 <= p50 and p50 <= p75 and p75 <= max_value
sources: docs/metrics/utilization.md
--- */
WITH samples AS (              -- in integer millionths, so that sums do not depend on the order of rows
    SELECT
        file_group,
        cluster,
        metric,
        date_trunc('minute', time_utc) AS minute_utc,
        CAST(round(value * 1000000) AS BIGINT) AS micro
    FROM staging.utilization
    WHERE value IS NOT NULL
)

SELECT
    file_group,
    cluster,
    metric,
    minute_utc,
    count(*) AS samples,
    count(*) FILTER (WHERE micro = 0) AS zero_samples,
    CAST(sum(micro) AS BIGINT) / count(*) / 1e6 AS mean,
    quantile_cont(micro, 0.25) / 1e6 AS p25,
    quantile_cont(micro, 0.5) / 1e6 AS p50,
    quantile_cont(micro, 0.75) / 1e6 AS p75,
    min(micro) / 1e6 AS min_value,
    max(micro) / 1e6 AS max_value
FROM samples
GROUP BY ALL

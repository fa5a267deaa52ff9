/* ---
about: Distribution of server power by kind and type of server, over all servers and times.
grain: [cluster, server_kind, server_type, measure]
columns:
  cluster: VARCHAR seren
  server_kind: VARCHAR gpu or cpu; unknown where the file's name does not say
  server_type: VARCHAR A, B, C or D; all for every type of a kind; unknown where the file's name does not say
  measure: 'VARCHAR name of the column: Sys_Total_Power, CPU_Power, MEM_Power ...'
  servers: BIGINT [1] servers with a sample
  samples: BIGINT [1] samples, without empty cells
  min_watts: DOUBLE [W] the smallest sample
  p01: DOUBLE [W] 1st percentile
  p05: DOUBLE [W] 5th percentile
  p10: DOUBLE [W] 10th percentile
  p25: DOUBLE [W] first quartile
  p50: DOUBLE [W] median
  p75: DOUBLE [W] third quartile
  p90: DOUBLE [W] 90th percentile
  p95: DOUBLE [W] 95th percentile
  p99: DOUBLE [W] 99th percentile
  max_watts: DOUBLE [W] the largest sample
  mean_watts: DOUBLE [W] mean of the samples, each rounded to a millionth
  zero_share: DOUBLE [1] share of the samples that are 0
measures:
  servers: none               # a server has several measures
  samples: sum except over server_type    # `all` is every type of a kind
  min_watts: min
  max_watts: max
  zero_share: none, shown in %
  others: none
checks:
  - samples > 0
  - zero_share between 0 and 1
sources: docs/metrics/utilization.md
--- */
WITH typed AS (                -- each type of server, and all types of a kind
    SELECT
        cluster,
        coalesce(server_kind, 'unknown') AS server_kind,
        unnest([coalesce(server_type, 'unknown'), 'all']) AS server_type,
        node,
        measure,
        watts
    FROM staging.server_power
    WHERE watts IS NOT NULL
),

servers_of AS (
    SELECT cluster, server_kind, server_type, measure, count(DISTINCT node) AS servers
    FROM typed
    GROUP BY ALL
),

counted AS (
    SELECT cluster, server_kind, server_type, measure, watts, count(*) AS samples
    FROM typed
    GROUP BY ALL
),

ranked AS (
    SELECT
        *,
        sum(samples) OVER (whole ORDER BY watts) AS until,
        sum(samples) OVER whole AS n
    FROM counted
    WINDOW whole AS (PARTITION BY cluster, server_kind, server_type, measure)
)

SELECT
    r.cluster,
    r.server_kind,
    r.server_type,
    r.measure,
    max(s.servers) AS servers,
    max(r.n) AS samples,
    min(r.watts) AS min_watts,
    {{ quantile_of_counts('watts', 10) }} AS p01,
    {{ quantile_of_counts('watts', 50) }} AS p05,
    {{ quantile_of_counts('watts', 100) }} AS p10,
    {{ quantile_of_counts('watts', 250) }} AS p25,
    {{ quantile_of_counts('watts', 500) }} AS p50,
    {{ quantile_of_counts('watts', 750) }} AS p75,
    {{ quantile_of_counts('watts', 900) }} AS p90,
    {{ quantile_of_counts('watts', 950) }} AS p95,
    {{ quantile_of_counts('watts', 990) }} AS p99,
    max(r.watts) AS max_watts,
    CAST(sum(CAST(watts AS DECIMAL(18, 6)) * samples) AS DOUBLE) / max(n) AS mean_watts,
    coalesce(sum(samples) FILTER (WHERE watts = 0), 0) / max(n) AS zero_share
FROM ranked AS r
JOIN servers_of AS s USING (cluster, server_kind, server_type, measure)
GROUP BY ALL

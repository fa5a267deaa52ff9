/* ---
about: Distribution of the power of AcmeTrace's servers by kind and type, over all servers and times. A server that is read more often has more weight.
question: What do GPUs and servers of AcmeTrace do?
params:
  measure: VARCHAR = null only this column of the files, as Sys_Total_Power or MEM_Power
--- */
-- server_type all: every type of a kind; mean_watts: each sample rounded to a millionth
WITH samples AS (
    SELECT cluster, coalesce(server_kind, 'unknown') AS server_kind,
        unnest([coalesce(server_type, 'unknown'), 'all']) AS server_type, measure, node, watts
    FROM staging.server_power
    WHERE watts IS NOT NULL AND ($measure IS NULL OR measure = $measure)
)
SELECT cluster, server_kind, server_type, measure, count(DISTINCT node) AS servers, count(*) AS samples,
    min(watts) AS min_watts, quantile_cont(watts, 0.05) AS p05, quantile_cont(watts, 0.25) AS p25,
    median(watts) AS p50, quantile_cont(watts, 0.75) AS p75, quantile_cont(watts, 0.95) AS p95, max(watts) AS max_watts,
    sum(watts::DECIMAL(18, 6))::DOUBLE / count(*) AS mean_watts, count(*) FILTER (watts = 0) / count(*) AS zero_share
FROM samples
GROUP BY cluster, server_kind, server_type, measure
ORDER BY cluster, server_kind DESC, measure, server_type

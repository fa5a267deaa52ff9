/* ---
about: How far flows go, by packets, in each hour with flow tables.
--- */
SELECT
    cluster,
    hour_utc,
    locality,
    flows,
    packets,
    round(100 * packet_share, 2) AS packet_percent,
    round(rtt_p50_ns / 1000, 2) AS rtt_p50_us,
    round(rtt_p99_ns / 1000, 2) AS rtt_p99_us
FROM metrics.flow_locality_hour
ORDER BY cluster, hour_utc, CASE locality WHEN 'same_leaf' THEN 1 WHEN 'same_group' THEN 2 ELSE 3 END

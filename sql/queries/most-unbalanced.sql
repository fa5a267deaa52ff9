/* ---
about: The leaves whose uplinks share the traffic least evenly, by coefficient of variation.
params:
  hour: TIMESTAMP = null the hour (UTC); the latest where left out
  limit: INTEGER = 10 how many
--- */
SELECT b.switch AS leaf, b.direction, b.uplinks, round(b.cov, 4) AS cov,
    round(b.max_over_mean, 3) AS max_over_mean, round(b.jain_index, 4) AS jain_index,
    coalesce(list_aggregate(list_sort(list(s.kind || ' ' || s.port) FILTER (WHERE s.kind IS NOT NULL)), 'string_agg', ', '), '')
        AS suspects,
    b.mean_bytes, b.hour_utc, b.cluster
FROM metrics.uplink_balance AS b
LEFT JOIN metrics.suspect_links AS s
    ON s.cluster = b.cluster AND s.switch = b.switch AND s.kind = 'uplink_dead_' || b.direction
WHERE b.cov IS NOT NULL
    AND b.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.uplink_balance))
GROUP BY ALL
ORDER BY b.cov DESC, b.cluster, b.switch, b.direction
LIMIT $limit

/* ---
about: How much of what servers send leaves their leaf, in the latest hour of its cluster.
--- */
SELECT
    switch,
    round(100 * leaving_share, 1) AS leaving_percent,
    access_in_bytes,
    uplink_out_bytes,
    round(1e6 * in_out_difference, 2) AS in_out_difference_ppm,
    hour_utc,
    cluster,
    row_number() OVER (ORDER BY leaving_share DESC, cluster, switch) AS place
FROM metrics.leaf_hour
WHERE leaving_share IS NOT NULL
QUALIFY hour_utc = max(hour_utc) OVER (PARTITION BY cluster)
ORDER BY cluster, starts_with(switch, 'ST-'), length(switch), switch

/* ---
about: Bytes in and out of each leaf in an hour. A switch stores no data, so both must agree.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
SELECT
    switch,
    CASE WHEN starts_with(switch, 'ST-') THEN 'storage leaf' ELSE 'leaf' END AS kind,
    in_bytes,
    out_bytes,
    round(1e6 * in_out_difference, 2) AS in_over_out_ppm,
    round(1e6 * abs(in_out_difference), 2) AS apart_ppm,
    row_number() OVER (ORDER BY starts_with(switch, 'ST-'), abs(in_out_difference) DESC, switch) AS place
FROM metrics.leaf_hour
WHERE cluster = $cluster AND hour_utc = $hour AND in_out_difference IS NOT NULL
ORDER BY starts_with(switch, 'ST-'), length(switch), switch

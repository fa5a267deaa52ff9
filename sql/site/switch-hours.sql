/* ---
about: What each leaf moved in each hour, by where it came from and went to.
--- */
SELECT cluster, switch, hour_utc, access_in_bytes, access_out_bytes, uplink_in_bytes, uplink_out_bytes, leaving_share
FROM metrics.leaf_hour
ORDER BY cluster, switch, hour_utc

/* ---
about: Bytes of each leaf in each hour, on its server side and its spine side.
--- */
SELECT cluster, switch, hour_utc, access_in_bytes, access_out_bytes, uplink_in_bytes, uplink_out_bytes, leaving_share
FROM metrics.leaf_hour
ORDER BY cluster, switch, hour_utc

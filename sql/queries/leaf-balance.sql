/* ---
about: Bytes in and out of each leaf in an hour, on its server side and its spine side.
question: How full is the fabric, and how even?
params:
  leaf: VARCHAR = null only this leaf, as Leaf-10
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [switch, in_bytes, out_bytes, in_out_difference, leaving_share]
--- */
-- in_out_difference: in_bytes over out_bytes, less 1
-- leaving_share: bytes sent to the spines, over those received from servers
SELECT switch, in_bytes, out_bytes,
    round(in_out_difference, 6) + 0.0 AS in_out_difference,     -- + 0.0 turns -0.0 into 0.0
    round(leaving_share, 4) AS leaving_share,
    access_in_bytes, access_out_bytes, uplink_in_bytes, uplink_out_bytes, hour_utc, cluster
FROM metrics.leaf_hour
WHERE hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.leaf_hour))
    AND ($leaf IS NULL OR switch = $leaf)
ORDER BY cluster, regexp_extract(switch, '^(.*?)[0-9]*$', 1), length(switch), switch

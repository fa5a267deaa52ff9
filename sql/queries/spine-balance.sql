/* ---
about: Bytes that each spine sent to and received from its leaves in an hour, and how evenly spines are used.
question: How full is the fabric, and how even?
aliases: [even-spines, spines]
params:
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [spine, to_leaf_bytes, from_leaf_bytes, over_mean, over_mean_loaded]
--- */
SELECT spine, to_leaf_bytes, from_leaf_bytes, round(over_mean, 4) AS over_mean,
    round(in_out_difference, 6) + 0.0 AS in_out_difference,     -- + 0.0 turns -0.0 into 0.0
    leaves_seen, uplinks_seen, checkable, checkable_note, hour_utc, cluster,
    round((to_leaf_bytes + from_leaf_bytes) * count(*) OVER same_hour
        / nullif(sum(to_leaf_bytes + from_leaf_bytes) OVER same_hour, 0), 4) AS over_mean_loaded
FROM metrics.spine_hour
WHERE hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.spine_hour))
WINDOW same_hour AS (PARTITION BY cluster, hour_utc)
ORDER BY cluster, regexp_extract(spine, '^(.*?)[0-9]*$', 1), length(spine), spine

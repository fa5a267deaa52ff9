/* ---
about: Bytes that each spine sent to and received from its leaves in an hour, and how evenly spines are used.
question: How full is the fabric, and how even?
aliases: [even-spines, spines]
params:
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [spine, to_leaf_bytes, from_leaf_bytes, over_mean, over_mean_loaded]
unknown:
  over_mean: >-
    SELECT concat((SELECT max(checkable_note) FROM metrics.spine_hour), '. What can be judged: bytes of a GPU leaf''s uplinks: standard deviation at most ',
    format('{:.1f} %', 100 * max(cov) FILTER (WHERE cov < threshold)),
    ' of the mean', ', but ' || string_agg(concat(switch, ' ', direction, ' ', format('{:.1f} %', 100 * cov)), ', ' ORDER BY cov DESC)
    FILTER (WHERE cov >= threshold), ' (warehouse sql -q most-unbalanced)')
    FROM (SELECT switch, direction, max(cov) AS cov FROM metrics.uplink_balance JOIN topology.switches USING (cluster, switch)
    WHERE role = 'leaf' GROUP BY cluster, switch, direction)
    CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'uneven_leaf')
notes:
  over_mean: SELECT 'bytes of the spine, both ways, over the mean of the checkable spines' FROM answer HAVING count(over_mean) > 0
  over_mean_loaded: >-
    SELECT concat('bytes of the spine, both ways, over the mean of these ', count(*), ' spines; bytes of loaded leaves only') FROM answer
  one_way_link: >-
    SELECT string_agg(concat(s.switch, ' ', regexp_extract(s.port, '[0-9].*$'), ' to ', u.spine, ' carries no data ',
    CASE WHEN ends_with(s.kind, 'out') THEN 'outward' ELSE 'inward' END, ', the other uplinks of the leaf moved ',
    format('{:.1f} TB', m.mean_bytes / 1e12), ' each. With that, ', u.spine, ' would have ',
    format('{:.1f} TB', (CASE WHEN ends_with(s.kind, 'out') THEN a.from_leaf_bytes ELSE a.to_leaf_bytes END + m.mean_bytes) / 1e12),
    CASE WHEN ends_with(s.kind, 'out') THEN ' in from_leaf_bytes' ELSE ' in to_leaf_bytes' END), '; ' ORDER BY u.spine, s.switch, s.port)
    FROM answer AS a
    JOIN topology.uplinks AS u ON u.cluster = a.cluster AND u.spine = a.spine
    JOIN metrics.suspect_links AS s ON s.cluster = u.cluster AND s.switch = u.leaf AND s.port = u.leaf_port AND starts_with(s.kind, 'uplink_')
    JOIN (SELECT b.cluster, b.switch, b.hour_utc, b.direction, b.mean_bytes * b.uplinks / (b.uplinks - count(*)) AS mean_bytes
    FROM metrics.uplink_balance AS b JOIN metrics.suspect_links AS d ON d.cluster = b.cluster AND d.switch = b.switch AND starts_with(d.kind, 'uplink_') AND ends_with(d.kind, '_' || b.direction)
    GROUP BY b.cluster, b.switch, b.hour_utc, b.direction, b.mean_bytes, b.uplinks HAVING count(*) < b.uplinks) AS m ON m.cluster = s.cluster AND m.switch = s.switch AND m.hour_utc = a.hour_utc AND ends_with(s.kind, '_' || m.direction)
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

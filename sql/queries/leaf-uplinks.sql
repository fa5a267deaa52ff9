/* ---
about: Each uplink of a leaf in an hour, with its bytes over the mean of the leaf's uplinks, those furthest from the mean first.
question: How full is the fabric, and how even?
params:
  leaf: VARCHAR the leaf, as Leaf-10
  direction: VARCHAR = 'out' out or in
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [leaf_port, spine, bytes, over_mean, suspect]
notes:
  over_mean: bytes of the uplink over the mean of the leaf's uplinks in this direction
  all_uplinks: >-
    SELECT format('bytes deviate by {:.1f} % of their mean', 100 * stddev_pop(bytes) / nullif(avg(bytes), 0)) FROM answer
  other_spines: >-
    SELECT concat(count(*), ' uplinks to spines without a dead link; their bytes deviate by ',
    format('{:.1f} % of their mean', 100 * stddev_pop(bytes) / nullif(avg(bytes), 0))) FROM answer
    WHERE spine NOT IN (SELECT spine FROM answer WHERE suspect IS NOT NULL) AND EXISTS (FROM answer WHERE suspect IS NOT NULL)
    HAVING count(*) > 0
--- */
SELECT h.port AS leaf_port, u.spine, CASE $direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END AS bytes,
    round((CASE $direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END)
        / nullif(avg(CASE $direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END) OVER (PARTITION BY h.cluster), 0), 4) AS over_mean,
    s.kind AS suspect, u.spine_port, h.switch AS leaf, $direction AS direction, h.hour_utc, h.cluster
FROM metrics.port_hour AS h
LEFT JOIN topology.uplinks AS u ON u.cluster = h.cluster AND u.leaf = h.switch AND u.leaf_port = h.port
LEFT JOIN metrics.suspect_links AS s
    ON s.cluster = h.cluster AND s.switch = h.switch AND s.port = h.port AND s.kind = 'uplink_dead_' || $direction
WHERE h.switch = $leaf AND h.port_class IN ('uplink', 'storage_uplink')
    AND h.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
ORDER BY abs(1 - CASE $direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END
    / nullif(avg(CASE $direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END) OVER (PARTITION BY h.cluster), 0)) DESC NULLS LAST,
    h.cluster, length(h.port), h.port

/* ---
about: Ports with the most bytes in an hour, in and out together.
question: How full is the fabric, and how even?
params:
  switch: VARCHAR = null only ports of this switch, as Leaf-10
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 20 number of rows
answer: [switch, port, server, in_bytes, out_bytes]
ranked: in_bytes + out_bytes desc
notes:
  observed: >-
    SELECT concat('links of ', sum(loaded)::BIGINT, ' of ', sum(known)::BIGINT, ' leaves; the others have no counters in this hour')
    FROM (SELECT count(h.switch) AS loaded, greatest(count(*), coalesce(max(c.leaves + c.storage_leaves), 0)) AS known
    FROM topology.switches AS s LEFT JOIN reference.clusters AS c USING (cluster)
    LEFT JOIN (SELECT DISTINCT cluster, switch FROM metrics.port_hour WHERE hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))) AS h
    USING (cluster, switch) WHERE s.role <> 'spine' GROUP BY s.cluster) HAVING sum(loaded) < sum(known) AND $switch IS NULL
  shared_names: >-
    SELECT concat(string_agg(DISTINCT server, ', ' ORDER BY server), ': each name stands for two servers whose ports no sheet tells apart')
    FROM answer WHERE regexp_full_match(server, 'GPU-[0-9]+/[0-9]+') HAVING count(*) > 0
  fullest_link: >-
    SELECT concat(switch, ' ', regexp_extract(port, '[0-9].*$'), ' (', replace(port_class, '_', ' '), '), ',
    format('{:.1f} %', 100 * greatest(in_utilization, out_utilization)), ' of its line rate in the mean of the hour')
    FROM metrics.port_hour WHERE hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour)) AND port_class <> 'management'
    ORDER BY greatest(in_utilization, out_utilization) DESC, switch, port LIMIT 1
  fullest_uplink: >-
    SELECT concat(switch, ' ', regexp_extract(port, '[0-9].*$'), ', ', format('{:.1f} %', 100 * greatest(in_utilization, out_utilization)),
    ' of its own (warehouse sql -q hottest-uplinks)')
    FROM metrics.port_hour WHERE hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour)) AND ends_with(port_class, 'uplink')
    ORDER BY greatest(in_utilization, out_utilization) DESC, switch, port LIMIT 1
--- */
SELECT h.switch, h.port, p.server, h.in_bytes, h.out_bytes,
    round(h.in_utilization, 4) AS in_utilization, round(h.out_utilization, 4) AS out_utilization,
    p.port_class, p.nic, h.flags, h.hour_utc, h.cluster
FROM metrics.port_hour AS h
LEFT JOIN topology.ports AS p USING (cluster, switch, port)
WHERE h.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
    AND ($switch IS NULL OR h.switch = $switch)
ORDER BY h.in_bytes + h.out_bytes DESC, h.cluster, h.switch, h.port
LIMIT $limit

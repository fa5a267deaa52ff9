/* ---
about: Links that look miswired, or carry data one way only, in every loaded hour, with the evidence.
question: Which links carry no data, or are cabled elsewhere?
aliases: [miscabled, one-way-links]
params:
  kind: VARCHAR = null only this kind, as uplink_no_data_in
answer: [switch, port, kind, server, candidate_port, evidence]
notes:
  not_judged: >-
    SELECT nullif(concat_ws('; ',
    (SELECT concat('ports of ', string_agg(switch, ', ' ORDER BY length(switch), switch), ' other than uplinks:',
    ' no sheet says what is plugged in there') FROM topology.switches WHERE role = 'storage_leaf' AND has_counters HAVING count(*) > 0),
    (SELECT concat('one-way and idle links of the ', sum(unloaded)::BIGINT, ' leaves without counters')
    FROM (SELECT greatest(count(*), coalesce(max(c.leaves + c.storage_leaves), 0)) - count(*) FILTER (WHERE s.has_counters) AS unloaded
    FROM topology.switches AS s LEFT JOIN reference.clusters AS c USING (cluster) WHERE s.role <> 'spine' GROUP BY s.cluster)
    HAVING sum(unloaded) > 0)), '')
--- */
SELECT switch, port, kind, candidate_port, server, nic, hours, evidence, cluster
FROM metrics.suspect_links
WHERE $kind IS NULL OR kind = $kind
ORDER BY cluster, kind, length(switch), switch, port

/* ---
about: Links that look miswired, or carry data one way only, in every loaded hour, with the evidence.
question: Which links carry no data, or are cabled elsewhere?
aliases: [miscabled, one-way-links]
params:
  kind: VARCHAR = null only this kind, as uplink_no_data_in
answer: [switch, port, kind, server, candidate_port, evidence]
--- */
SELECT switch, port, kind, candidate_port, server, nic, hours, evidence, cluster
FROM metrics.suspect_links
WHERE $kind IS NULL OR kind = $kind
ORDER BY cluster, kind, length(switch), switch, port

/* ---
about: NICs whose switch port no sheet names, and why.
question: Which links carry no data, or are cabled elsewhere?
params:
  server: VARCHAR = null only NICs of this server, as GPU-35
--- */
SELECT server, hca, nic, nic_ip, reason, cluster
FROM topology.nic_ports
WHERE status = 'unresolved' AND ($server IS NULL OR lower(server) = lower($server))
ORDER BY cluster, length(server), server, hca

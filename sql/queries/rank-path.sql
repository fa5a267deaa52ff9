/* ---
about: 'Path of one rank of a training task, from log line to switch port, for sending and receiving, with the evidence for each step.'
question: Who trains together, over which ports, how much?
aliases: [rank-paths]
params:
  task: VARCHAR = null the task's folder; default the latest with paths
  rank: INTEGER = 0 the rank in its communicator
answer: [communicator, channel, kind, src, dst, hca, leaf_port, other_server]
--- */
WITH chosen AS (SELECT coalesce($task, (SELECT max(task) FROM topology.rank_paths)) AS task)
SELECT r.communicator, r.channel, r.kind, r.src_rank AS src, r.dst_rank AS dst,
    CASE WHEN r.src_rank = $rank THEN r.src_hca ELSE r.dst_hca END AS hca,
    CASE WHEN r.src_rank = $rank THEN r.src_switch || ' ' || regexp_extract(r.src_port, '[0-9].*$')
        ELSE r.dst_switch || ' ' || regexp_extract(r.dst_port, '[0-9].*$') END AS leaf_port,
    CASE WHEN r.src_rank = $rank THEN r.src_switch ELSE r.dst_switch END AS switch,
    CASE WHEN r.src_rank = $rank THEN r.src_port ELSE r.dst_port END AS port,
    r.evidence, CASE WHEN r.src_rank = $rank THEN r.src_evidence ELSE r.dst_evidence END AS nic_evidence,
    CASE WHEN r.src_rank = $rank THEN r.dst_server ELSE r.src_server END AS other_server,
    CASE WHEN r.src_rank = $rank THEN r.dst_port ELSE r.src_port END AS other_port,
    r.same_leaf, r.file || ':' || r.line AS log_line, e.text, r.task, r.cluster
FROM topology.rank_paths AS r
LEFT JOIN staging.log_events AS e ON e.cluster = r.cluster AND e.file = r.file AND e.line = r.line AND e.item = 0
WHERE r.task = (SELECT task FROM chosen) AND $rank IN (r.src_rank, r.dst_rank)
ORDER BY r.cluster, r.communicator, r.kind, r.channel, r.src_rank, r.dst_rank

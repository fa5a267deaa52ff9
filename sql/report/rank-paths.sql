/* ---
about: Between which servers the ranks of a task talk, over which leaves.
params:
  cluster: VARCHAR the cluster
  task: VARCHAR the task
--- */
SELECT
    coalesce(src_server, '?') AS src_server,
    coalesce(dst_server, '?') AS dst_server,
    count(*) AS paths,
    count(*) FILTER (WHERE kind = 'ring') AS rings,
    count(*) FILTER (WHERE kind = 'tree') AS trees,
    count(*) FILTER (WHERE same_leaf) AS same_leaf,
    string_agg(DISTINCT src_switch, ' ' ORDER BY src_switch) AS src_leaves,
    string_agg(DISTINCT dst_switch, ' ' ORDER BY dst_switch) AS dst_leaves,
    string_agg(DISTINCT evidence, ' ' ORDER BY evidence) AS evidence
FROM topology.rank_paths
WHERE cluster = $cluster AND task = $task
GROUP BY ALL
ORDER BY ALL

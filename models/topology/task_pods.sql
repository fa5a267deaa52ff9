/* ---
about: Pods of each training task, with server and ranks. Ranks come from lines of the pod's own log; the number in a pod's name is not a rank. Tasks without a log come from tasks.csv and from the traffic.
grain: [cluster, task, pod]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  server: VARCHAR the server that the pod ran on, GPU-n
  host: VARCHAR name of the pod's node, host or address in the list of pod starts or in NCCL's lines; NULL where neither names one
  host_ip: VARCHAR address of that server
  start_utc: TIMESTAMP when the pod was started; NULL without a list of pod starts
  end_utc: TIMESTAMP end of the task on this server, as listed; NULL for a pod with a log
  first_rank: BIGINT [1] lowest rank of the pod; NULL where no line names a rank
  ranks: BIGINT [1] ranks of the pod
  evidence: VARCHAR evidence for first_rank, log where a line of the pod names it, inferred:rank_block where a line names another rank of the pod, listed
  server_evidence: VARCHAR evidence for the server, log (name of node or host), inferred:host_number (address of the host), listed or inferred:traffic
  logged_ranks: BIGINT [1] distinct ranks that log lines name
  log_lines: BIGINT [1] log lines that name a rank
  source: VARCHAR how the pod is known, log, listed (tasks.csv) or inferred:traffic (a job found in the traffic of an hour)
checks:
  - evidence in ('log', 'inferred:rank_block', 'listed') or evidence is null
  - server_evidence in ('log', 'inferred:host_number', 'listed', 'inferred:traffic') or server_evidence is null
  - source in ('log', 'listed', 'inferred:traffic')
  - (first_rank is null) = (evidence is null)
  - warn: "none: SELECT task, pod, host FROM this WHERE source = 'log' AND server IS NULL AND host IS NOT NULL"
    says: "{task}: the server of pod {pod} is unknown because no sheet names its host {host}"
  - warn: "none: SELECT task, pod FROM this WHERE source = 'log' AND server IS NULL AND host IS NULL"
    says: "{task}: the server of pod {pod} is unknown because its log names no node, host or address"
  # no rank is in two pods of a task
  - none: SELECT a.task, a.pod, b.pod FROM this AS a JOIN this AS b USING (cluster, task)
      WHERE a.source = 'log' AND a.pod < b.pod AND a.first_rank < b.first_rank + b.ranks AND b.first_rank < a.first_rank + a.ranks
sources: docs/metrics/tasks.md
--- */
SELECT
    cluster, task, pod, server, host, host_ip, start_utc, CAST(NULL AS TIMESTAMP) AS end_utc, first_rank, ranks,
    evidence, server_evidence, logged_ranks, log_lines, 'log' AS source
FROM topology.logged_pods
UNION ALL
SELECT
    cluster,
    task,
    pod,
    server,
    pod AS host,
    CAST(NULL AS VARCHAR) AS host_ip,
    start_utc,
    end_utc,
    first_rank,
    ranks,
    CASE WHEN first_rank IS NOT NULL THEN 'listed' END AS evidence,
    CASE WHEN server IS NOT NULL THEN source END AS server_evidence,
    0 AS logged_ranks,
    0 AS log_lines,
    source
FROM topology.listed_pods

/* ---
about: Start time and node of each pod of a task, from the task's list of pod starts.
grain: [cluster, task, pod]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  host_ip: VARCHAR address of the pod's node
  node: VARCHAR name of the pod's node
  start_utc: TIMESTAMP when the pod was started
  file: VARCHAR the list's path in its release
  line: INTEGER [1] line of the list, from 1
sources: docs/formats/logs.md
--- */
SELECT                         -- a pod listed twice was restarted: the last start counts
    f.cluster,
    {{ task_name('p.filename') }} AS task,
    p.pod,
    p.ip AS host_ip,
    p.node,
    p.start AS start_utc,
    p.filename AS file,
    p.line
FROM raw.pod_starts AS p
JOIN raw.files AS f ON f.release_path = p.filename
WHERE f.status IN ('read', 'partial')
QUALIFY row_number() OVER (PARTITION BY p.filename, p.pod ORDER BY p.start DESC, p.line DESC) = 1

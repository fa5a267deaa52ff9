/* ---
about: When each pod of a task was started, and on which node, as its list says.
grain: [cluster, task, pod]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  host_ip: VARCHAR address of its node
  node: VARCHAR name of its node
  start_utc: TIMESTAMP when it was started
  file: VARCHAR the list's path in its release
  line: INTEGER [1] its line there, from 1
sources: docs/formats/logs.md
--- */
SELECT                         -- a pod that stands there twice was started again: the last start counts
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

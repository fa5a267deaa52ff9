/* ---
about: 'Tasks that a file `tasks.csv` lists: where and when they ran, one row a task, server and line.'
grain: [file, line, host]
columns:
  cluster: VARCHAR cluster that the line or the file's folder names; NULL where neither does
  task: VARCHAR name of the task
  host: VARCHAR server as listed, a name or an address
  start_utc: TIMESTAMP start of the task
  end_utc: TIMESTAMP end of the task; NULL where it still ran
  first_rank: BIGINT [1] lowest rank on this server; NULL where the list has none
  ranks: BIGINT [1] ranks on this server; NULL where the list has none
  hcas: VARCHAR adapters that the task used, blanks or commas between; NULL for all of the server
  file: VARCHAR the list's path in its release
  line: INTEGER [1] line of the list, from 1
checks:
  - end_utc > start_utc or end_utc is null
sources: docs/formats/tasks.md
--- */
SELECT
    coalesce(t.cluster, nullif(f.cluster, 'unknown')) AS cluster,
    t.task,
    t.host,
    t.start_utc,
    t.end_utc,
    t.first_rank,
    t.ranks,
    t.hcas,
    t.filename AS file,
    t.line
FROM raw.task_list AS t
JOIN raw.files AS f ON f.release_path = t.filename
WHERE f.status IN ('read', 'partial')

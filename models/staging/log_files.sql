/* ---
about: Logs of training tasks, one row per file, with its lines by outcome. It shows which logs gave no iteration, and why.
grain: [file]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the log's name without .log; files of one pod, such as m.log.1 and m.log, have one name
  file: VARCHAR the log's path in its release
  bytes: BIGINT [B] size of the file, compressed if the log is
  lines: BIGINT [1] lines, each between line feeds or carriage returns
  event_lines: BIGINT [1] lines with an event
  label_lines: BIGINT [1] lines of which only the launcher's label is there
  text_lines: BIGINT [1] whole lines that no pattern knows
  damaged_lines: BIGINT [1] lines that are cut, spliced or too long
  blank_lines: BIGINT [1] lines without text
  message_lines: BIGINT [1] lines with an event of which only the logger's prefix is known
  iterations: BIGINT [1] events that show an iteration, by the trainer's line, a progress bar or the optimizer's step
  first_utc: TIMESTAMP first time in the log, as written; NULL where no line has one
  last_utc: TIMESTAMP last time in the log, as written
  progress_line: INTEGER [1] first line without an event that looks like progress; NULL where none does
  progress_text: VARCHAR its text, at most 200 characters
  problem: VARCHAR no iteration (neither this log nor another of the task has one, and this one has text), else NULL
checks:
  - lines = event_lines + label_lines + text_lines + damaged_lines + blank_lines
  - problem in ('no iteration') or problem is null
  - warn: problem is null or progress_line is null
    says: "{file}: read, no iteration found in {lines:,} lines; line {progress_line} looks like one: '{progress_text}'; to add its pattern to data/log_lines.yaml of your project: docs/formats/logs.md"
  - warn: problem is null or progress_line is not null
    says: "{file}: read, no iteration found in {lines:,} lines, and none that looks like one"
sources: docs/formats/logs.md
--- */
WITH counted AS (
    SELECT
        filename,
        count(*) FILTER (WHERE kind = 'iteration' OR (kind IN ('optimizer_step', 'progress') AND step >= 1)) AS iterations,
        min(time_utc) AS first_utc,
        max(time_utc) AS last_utc
    FROM raw.log_events
    GROUP BY filename
),

logs AS (
    SELECT
        f.cluster,
        {{ task_name('s.filename') }} AS task,
        {{ pod_name('s.filename') }} AS pod,
        s.filename AS file,
        f.bytes,
        CAST(s.value ->> '$.lines' AS BIGINT) AS lines,
        CAST(s.value ->> '$.event' AS BIGINT) AS event_lines,
        CAST(s.value ->> '$.label' AS BIGINT) AS label_lines,
        CAST(s.value ->> '$.text' AS BIGINT) AS text_lines,
        CAST(s.value ->> '$.damaged' AS BIGINT) AS damaged_lines,
        CAST(s.value ->> '$.blank' AS BIGINT) AS blank_lines,
        CAST(s.value ->> '$.message' AS BIGINT) AS message_lines,
        c.iterations,
        least(c.first_utc, CAST(s.value ->> '$.first_time' AS TIMESTAMP)) AS first_utc,
        greatest(c.last_utc, CAST(s.value ->> '$.last_time' AS TIMESTAMP)) AS last_utc,
        s.line AS progress_line,
        s.text AS progress_text
    FROM raw.log_events AS s
    JOIN raw.files AS f ON f.release_path = s.filename
    JOIN counted AS c ON c.filename = s.filename
    WHERE s.kind = 'log_file' AND f.status IN ('read', 'partial')
)

SELECT
    *,
    CASE WHEN text_lines + message_lines > 0 AND sum(iterations) OVER (PARTITION BY cluster, task) = 0 THEN 'no iteration' END AS problem
FROM logs

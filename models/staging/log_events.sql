/* ---
about: Events read from the lines of training logs, one row per event. Columns that do not apply to the kind of event are NULL.
grain: [cluster, task, pod, segment, item]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the log's path below the task's folder, without .log; FILE@HOST for lines of a known host in a log of several hosts
  file: VARCHAR the log's path in its release
  line: INTEGER [1] line of the log, from 1
  segment: INTEGER [1] number of the piece between line feeds or carriage returns, from 1; counted on over the files of a pod
  item: INTEGER [1] number of the event in its segment, from 0
  family: VARCHAR writer of the line, deepspeed, hf_trainer, megatron, nccl ..; generic for a trainer that no pattern names
  kind: VARCHAR kind of event, see docs/formats/logs.md
  level: VARCHAR INFO, WARNING, ERROR ...; NULL where the line has none
  label: VARCHAR prefix that a launcher wrote before the line; never a part of the host
  time_utc: TIMESTAMP time of the line as written in the log; NULL where the line has none
  name: VARCHAR name of a setting, or of the thing that the event is about
  value: VARCHAR a setting's value, or text that has no column of its own
  step: BIGINT [1] iteration
  steps: BIGINT [1] planned iterations of the whole run
  seconds: DOUBLE [s] time per iteration as printed, often smoothed
  samples: BIGINT [1] samples per iteration
  loss: DOUBLE [1] loss as printed
  learning_rate: DOUBLE [1] learning rate as printed
  rank: INTEGER [1] rank that wrote the line, or that the line is about
  ranks: INTEGER [1] number of ranks of the communicator
  local_rank: INTEGER [1] GPU of the rank in its server; unreliable for service threads
  host: VARCHAR host name, from NCCL's prefix, syslog or the label; NULL where another writer may have damaged it
  pid: BIGINT [1] process, from NCCL's prefix
  tid: BIGINT [1] thread, from NCCL's prefix
  communicator: VARCHAR pointer of the communicator in that process
  channel: INTEGER [1] channel of the communicator
  channels: INTEGER [1] number of channels of the communicator
  src_rank: INTEGER [1] sending rank of an edge
  dst_rank: INTEGER [1] receiving rank of an edge
  direction: VARCHAR send or receive, as the writer of the line sees the edge
  transport: VARCHAR NET/IB, P2P/IPC ...
  nic_index: INTEGER [1] index of the NIC in the list of the host that wrote the line
  proxy_rank: INTEGER [1] rank whose NIC sends for the source of an edge (PXN)
  options: VARCHAR text after the NIC, /GDRDMA, /Shared ...
  text: VARCHAR the segment as written, at most 4,000 characters
sources: docs/formats/logs.md
--- */
-- A host name may lack its first bytes, or start with bytes of another writer. Then it shares its end with another name
-- of the process. The name with more lines is right; with equal numbers of lines, neither is used.
WITH lengths AS (
    SELECT filename, max(segment) AS segments
    FROM raw.log_events
    GROUP BY filename
),

logs AS (                      -- the files of a pod, in the order in which they were written, are read as one log
    SELECT
        f.file AS filename,
        f.cluster,
        f.task,
        f.pod,
        coalesce(sum(n.segments) OVER (
            PARTITION BY f.cluster, f.task, f.pod
            ORDER BY {{ file_order('f.file') }}
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS segments_before
    FROM staging.log_files AS f
    JOIN lengths AS n ON n.filename = f.file
),

names AS (
    SELECT filename, pid, host, count(*) AS lines
    FROM raw.log_events
    WHERE host IS NOT NULL
    GROUP BY filename, pid, host
),

seen AS (
    SELECT filename, host, sum(lines) AS lines
    FROM names
    GROUP BY filename, host
),

rivals AS (                    -- other host names of the same process, and of those with more lines where this name has a single line
    SELECT a.filename, a.pid, a.host, b.host AS rival, b.lines > a.lines AS is_right, b.lines < a.lines AS is_wrong
    FROM names AS a
    JOIN names AS b ON b.filename = a.filename AND b.pid = a.pid AND b.host <> a.host
    WHERE ends_with(a.host, b.host) OR ends_with(b.host, a.host)
    UNION ALL
    SELECT a.filename, a.pid, a.host, NULL AS rival, false AS is_right, false AS is_wrong
    FROM names AS a
    JOIN seen AS s ON s.filename = a.filename AND s.host = a.host AND s.lines = 1
    JOIN seen AS t ON t.filename = a.filename AND t.host <> a.host AND t.lines > 1
    WHERE ends_with(a.host, t.host) OR ends_with(t.host, a.host)
),

judged AS (
    SELECT
        filename,
        pid,
        host,
        CASE WHEN count(DISTINCT rival) FILTER (WHERE is_right) = 1 THEN min(rival) FILTER (WHERE is_right) END AS right_host,
        bool_and(is_wrong) AS stands
    FROM rivals
    GROUP BY filename, pid, host
),

known AS (
    SELECT n.filename, n.pid, n.host, CASE WHEN j.host IS NULL OR j.stands THEN n.host ELSE j.right_host END AS known_host
    FROM names AS n
    LEFT JOIN judged AS j ON j.filename = n.filename AND j.pid = n.pid AND j.host = n.host
),

counted AS (
    SELECT g.cluster, g.task, g.pod, count(DISTINCT k.known_host) AS hosts
    FROM known AS k
    JOIN logs AS g ON g.filename = k.filename
    GROUP BY g.cluster, g.task, g.pod
),

labelled AS (                  -- labels seen before lines of only one host: all lines with such a label are of that host
    SELECT e.filename, e.label, min(h.known_host) AS host
    FROM raw.log_events AS e
    JOIN known AS h ON h.filename = e.filename AND h.pid = e.pid AND h.host = e.host
    WHERE e.label IS NOT NULL AND h.known_host IS NOT NULL
    GROUP BY e.filename, e.label
    HAVING min(h.known_host) = max(h.known_host)
)

SELECT
    g.cluster,
    g.task,
    g.pod || CASE WHEN m.hosts > 1 THEN coalesce('@' || coalesce(h.known_host, l.host), '') ELSE '' END AS pod,
    e.filename AS file,
    e.line,
    e.segment + g.segments_before AS segment,
    e.item,
    e.family,
    e.kind,
    e.level,
    e.label,
    e.time_utc,
    e.name,
    e.value,
    e.step,
    e.steps,
    e.seconds,
    e.samples,
    e.loss,
    e.learning_rate,
    e.rank,
    e.ranks,
    e.local_rank,
    h.known_host AS host,
    e.pid,
    e.tid,
    e.communicator,
    e.channel,
    e.channels,
    e.src_rank,
    e.dst_rank,
    e.direction,
    e.transport,
    e.nic_index,
    e.proxy_rank,
    e.options,
    e.text
FROM raw.log_events AS e
JOIN logs AS g ON g.filename = e.filename
LEFT JOIN known AS h ON h.filename = e.filename AND h.pid IS NOT DISTINCT FROM e.pid AND h.host = e.host
LEFT JOIN counted AS m ON m.cluster = g.cluster AND m.task = g.task AND m.pod = g.pod
LEFT JOIN labelled AS l ON l.filename = e.filename AND l.label = e.label
WHERE e.kind IS DISTINCT FROM 'log_file'

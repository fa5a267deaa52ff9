/* ---
about: Rows of the wide utilization files with their cells as written. Every query reads them from the files.
partition: file_group
materialize: view
grain: [file, time_utc]
columns:
  file_group: VARCHAR cluster and metric
  file: VARCHAR the file's path in its release
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  time_utc: TIMESTAMP time of the row, UTC; rows that another file covers are left out
  cells: VARCHAR the cells in column order, separated by commas
sources: docs/formats/utilization.md
--- */
WITH spans AS (
    SELECT file_group, file, cluster, metric, min(time_utc) AS first_utc, max(time_utc) AS last_utc
    FROM staging.utilization_rows
    GROUP BY ALL
),

files AS (                     -- one row per file, with the time ranges of the earlier files of its group
    SELECT
        f.read_path,
        u.file_group,
        u.file,
        u.cluster,
        u.metric,
        list(struct_pack(first_utc := e.first_utc, last_utc := e.last_utc) ORDER BY e.file) AS earlier
    FROM spans AS u
    JOIN raw.files AS f ON f.release_path = u.file AND f.file_group = u.file_group
    LEFT JOIN spans AS e ON e.file_group = u.file_group AND e.file < u.file
    GROUP BY ALL
),

lines AS (
    SELECT
        f.file_group,
        f.file,
        f.cluster,
        f.metric,
        {{ moment_utc(line_time('l.line')) }} AS time_utc,
        substr({{ line_cells('l.line') }}, 2) AS cells,
        f.earlier
    FROM raw.acme_utilization AS l
    JOIN files AS f ON f.read_path = l.filename
    WHERE NOT starts_with(l.line, 'Time,')
)

SELECT
    file_group,
    file,
    cluster,
    metric,
    time_utc,
    cells
FROM lines
WHERE array_length(list_filter(earlier, LAMBDA e: time_utc >= e.first_utc AND time_utc <= e.last_utc)) = 0

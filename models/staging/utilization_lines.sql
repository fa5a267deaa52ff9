/* ---
about: Rows of the wide utilisation files with their cells as they are written; read from the files in every query.
partition: file_group
materialize: view
grain: [file, time_utc]
columns:
  file_group: VARCHAR cluster and metric
  file: VARCHAR the file's path in its release
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  time_utc: TIMESTAMP the moment, UTC; rows that another file covers are left out
  cells: VARCHAR the cells in the order of the columns, a comma between two
sources: docs/formats/utilization.md
--- */
WITH files AS (                -- a row a file, with the spans of those that come before it in its group
    SELECT
        f.read_path,
        u.file_group,
        u.file,
        u.cluster,
        u.metric,
        list(struct_pack(first_utc := e.first_utc, last_utc := e.last_utc) ORDER BY e.file) AS earlier
    FROM staging.utilization_files AS u
    JOIN raw.files AS f ON f.release_path = u.file AND f.file_group = u.file_group
    LEFT JOIN staging.utilization_files AS e ON e.file_group = u.file_group AND e.file < u.file
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

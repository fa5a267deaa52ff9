/* ---
about: Rows of the wide utilisation files with their cells, in the order of the columns; read from the files in every query.
partition: file_group
materialize: view
grain: [file, time_utc]
columns:
  file_group: VARCHAR cluster and metric
  file: VARCHAR the file's path in its release
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  time_utc: TIMESTAMP the moment, UTC; rows that another file covers are left out
  cells: DOUBLE[] the cell of each column; NULL where nothing or nan stands
sources: docs/formats/utilization.md
--- */
WITH files AS (
    SELECT f.read_path, u.file_group, u.file, u.cluster, u.metric
    FROM staging.utilization_files AS u
    JOIN raw.files AS f ON f.release_path = u.file AND f.file_group = u.file_group
),

lines AS (
    SELECT
        f.file_group,
        f.file,
        f.cluster,
        f.metric,
        {{ moment_utc(line_time('l.line')) }} AS time_utc,
        string_split(substr({{ line_cells('l.line') }}, 2), ',') AS cells
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
    CASE WHEN time_utc IS NOT NULL THEN try_cast(cells AS DOUBLE[]) END AS cells
FROM lines AS l
WHERE NOT EXISTS (
    SELECT 1
    FROM staging.utilization_files AS s
    WHERE s.file_group = l.file_group AND s.file < l.file AND l.time_utc BETWEEN s.first_utc AND s.last_utc
)

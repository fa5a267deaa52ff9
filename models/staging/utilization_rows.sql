/* ---
about: Rows of the wide utilization files, without their cells.
partition: file_group
grain: [file, time_utc]
columns:
  file_group: VARCHAR cluster and metric
  file: VARCHAR the file's path in its release
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  time_utc: TIMESTAMP time of the row, UTC
  cells: BIGINT [1] cells after the time
  is_covered: BOOLEAN true if the time lies within another file of the group, earlier by name; no metric counts such a row
  fits: BOOLEAN true if the row has a cell for each column
checks:
  - fits
sources: docs/formats/utilization.md
--- */
WITH counted AS (
    SELECT
        filename,
        {{ moment_utc(line_time('line')) }} AS time_utc,
        length(line) - length(replace(line, ',', '')) AS cells
    FROM raw.acme_utilization
    WHERE line IS NULL OR NOT starts_with(line, 'Time,')
),

columns_of AS (
    SELECT f.read_path, c.file_group, c.file, c.cluster, c.metric, count(*) AS n
    FROM staging.utilization_columns AS c
    JOIN raw.files AS f ON f.release_path = c.file AND f.file_group = c.file_group
    GROUP BY ALL
),

timed AS (
    SELECT c.file_group, c.file, c.cluster, c.metric, r.time_utc, r.cells, c.n
    FROM counted AS r
    JOIN columns_of AS c ON c.read_path = r.filename
),

spans AS (
    SELECT file_group, file, min(time_utc) AS first_utc, max(time_utc) AS last_utc
    FROM timed
    GROUP BY ALL
),

covered AS (                   -- rows whose time lies between the first and last time of an earlier file
    SELECT DISTINCT r.file, r.time_utc
    FROM timed AS r
    JOIN spans AS s ON s.file_group = r.file_group AND s.file < r.file AND r.time_utc BETWEEN s.first_utc AND s.last_utc
)

SELECT
    r.file_group,
    r.file,
    r.cluster,
    r.metric,
    r.time_utc,
    r.cells,
    c.file IS NOT NULL AS is_covered,
    coalesce(r.cells = r.n, false) AS fits
FROM timed AS r
LEFT JOIN covered AS c USING (file, time_utc)

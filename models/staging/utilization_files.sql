/* ---
about: 'Wide utilization files with rows, and the times and columns that each holds.'
partition: file_group
grain: [file]
columns:
  file_group: VARCHAR cluster and metric
  file: VARCHAR the file's path in its release
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  first_utc: TIMESTAMP time of its first row, UTC
  last_utc: TIMESTAMP time of its last row, UTC
  rows: BIGINT [1] rows, one per time
  covered_rows: BIGINT [1] rows whose times lie within an earlier file of the group; no metric counts them
  columns: BIGINT [1] columns beside the time
  columns_in_doubt: BIGINT [1] columns with a doubtful name; see staging.utilization_columns
checks:
  - columns > 0
sources: docs/formats/utilization.md
--- */
WITH columns_of AS (
    SELECT file, count(*) AS n, count(problem) AS in_doubt
    FROM staging.utilization_columns
    GROUP BY file
),

rows_of AS (
    SELECT
        file_group,
        file,
        cluster,
        metric,
        min(time_utc) AS first_utc,
        max(time_utc) AS last_utc,
        count(*) AS n,
        count(*) FILTER (WHERE is_covered) AS covered
    FROM staging.utilization_rows
    GROUP BY ALL
)

SELECT
    r.file_group,
    r.file,
    r.cluster,
    r.metric,
    r.first_utc,
    r.last_utc,
    r.n AS rows,
    r.covered AS covered_rows,
    c.n AS columns,
    c.in_doubt AS columns_in_doubt
FROM rows_of AS r
JOIN columns_of AS c USING (file)

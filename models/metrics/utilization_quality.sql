/* ---
about: 'Completeness of each wide utilization file (a row for each time, a column for each GPU or node): rows, gaps, columns in doubt, cells without a number.'
partition: file_group
grain: [file]
columns:
  file_group: VARCHAR cluster and metric
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  file: VARCHAR the file's path in its release
  first_utc: TIMESTAMP time of its first row, UTC
  last_utc: TIMESTAMP time of its last row, UTC
  rows: BIGINT [1] rows, one per time
  covered_rows: BIGINT [1] rows whose times lie within an earlier file of the group; no metric counts them
  step_seconds: DOUBLE [s] median time between two rows
  longest_gap_seconds: DOUBLE [s] longest time between two rows
  columns: BIGINT [1] columns beside the time
  columns_in_doubt: BIGINT [1] columns with a doubtful name; see staging.utilization_columns
  cells: BIGINT [1] cells of rows that no earlier file covers
  values: BIGINT [1] cells with a number
  nan_cells: BIGINT [1] cells with nan; the remaining cells without a number are empty
time: first_utc
dimensions: [cluster, metric, file]
measures:
  rows, covered_rows, cells, values, nan_cells: sum
  longest_gap_seconds: max
  others: none
checks:
  - cells = (rows - covered_rows) * columns
  - warn: values > 0
    says: "{file}: none of its {cells:,} cells holds a number"
  - warn: columns_in_doubt = 0
    says: "{file}: columns in doubt: {columns_in_doubt:,} of {columns:,}"
sources: docs/metrics/utilization.md
--- */
WITH files AS (
    SELECT
        file_group,
        file,
        cluster,
        metric,
        min(time_utc) AS first_utc,
        max(time_utc) AS last_utc,
        count(*) AS rows,
        count(*) FILTER (WHERE is_covered) AS covered_rows
    FROM staging.utilization_rows
    GROUP BY ALL
),

columns_of AS (
    SELECT file, count(*) AS columns, count(problem) AS columns_in_doubt
    FROM staging.utilization_columns
    GROUP BY file
),

steps AS (                     -- over all rows of a file, covered ones too
    SELECT
        file,
        epoch_us(time_utc) - lag(epoch_us(time_utc)) OVER (PARTITION BY file ORDER BY time_utc) AS step_us
    FROM staging.utilization_rows
),

steps_of AS (
    SELECT file, median(step_us) / 1e6 AS step_seconds, max(step_us) / 1e6 AS longest_gap_seconds
    FROM steps
    GROUP BY file
),

cells_of AS (                  -- utilization_values has each distinct text of a file once, and in how many samples it is; nan is no value
    SELECT
        file,
        sum(samples) AS cells,
        coalesce(sum(samples) FILTER (WHERE value IS NOT NULL), 0) AS numbers,
        coalesce(sum(samples) FILTER (WHERE lower(cell) = 'nan'), 0) AS nans
    FROM staging.utilization_values
    GROUP BY file
)

SELECT
    f.file_group,
    f.cluster,
    f.metric,
    f.file,
    f.first_utc,
    f.last_utc,
    f.rows,
    f.covered_rows,
    s.step_seconds,
    s.longest_gap_seconds,
    n.columns,
    n.columns_in_doubt,
    coalesce(c.cells, 0) AS cells,
    coalesce(c.numbers, 0) AS values,
    coalesce(c.nans, 0) AS nan_cells
FROM files AS f
JOIN columns_of AS n USING (file)
JOIN steps_of AS s USING (file)
LEFT JOIN cells_of AS c USING (file)

/* ---
about: Number of cells per distinct text of a wide utilization file, as input of the distribution.
partition: file_group
grain: [file, cell]
columns:
  file_group: VARCHAR cluster and metric
  file: VARCHAR the file's path in its release
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  cell: VARCHAR the cell as written; an empty cell counts as a text
  value: DOUBLE the measured value; NULL where the cell is empty or nan
  samples: BIGINT [1] cells with this text
  is_read: BOOLEAN true if the cell is empty, nan, or a number in the range of a measurement
checks:
  - is_read
sources: docs/formats/utilization.md
--- */
WITH numbered AS (             -- an integer identifies the file while cells are counted, to keep rows small
    SELECT *, CAST(row_number() OVER (ORDER BY file) AS INTEGER) AS number
    FROM (SELECT DISTINCT file_group, file, cluster, metric FROM staging.utilization_columns)
),

cells AS (
    SELECT f.number, unnest(string_split(l.cells, ',')) AS cell
    FROM staging.utilization_lines AS l
    JOIN numbered AS f USING (file)
),

counted AS (
    SELECT number, cell, count(*) AS samples
    FROM cells
    GROUP BY ALL
)

SELECT
    f.file_group,
    f.file,
    f.cluster,
    f.metric,
    c.cell,
    CASE WHEN {{ is_cell('c.cell') }} AND lower(c.cell) NOT IN ('', 'nan') THEN try_cast(c.cell AS DOUBLE) END AS value,
    c.samples,
    {{ is_cell('c.cell') }} AS is_read
FROM counted AS c
JOIN numbered AS f USING (number)

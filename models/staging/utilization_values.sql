/* ---
about: How often each text stands in the cells of a wide utilisation file; all that its distribution needs.
partition: file_group
grain: [file, cell]
columns:
  file_group: VARCHAR cluster and metric
  file: VARCHAR the file's path in its release
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  cell: VARCHAR the cell as written; nothing is a text, too
  value: DOUBLE the measurement; NULL where nothing or nan stands
  samples: BIGINT [1] cells of this text
  is_read: BOOLEAN whether the cell is nothing, nan, or a number of the size of a measurement
checks:
  - is_read
sources: docs/formats/utilization.md
--- */
WITH numbered AS (             -- a number stands for the file where its cells are counted: a cell carries little
    SELECT *, CAST(row_number() OVER (ORDER BY file) AS INTEGER) AS number
    FROM staging.utilization_files
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

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
WITH cells AS (
    SELECT file_group, file, cluster, metric, unnest(string_split(cells, ',')) AS cell
    FROM staging.utilization_lines
),

counted AS (
    SELECT file_group, file, cluster, metric, cell, count(*) AS samples
    FROM cells
    GROUP BY file_group, file, cluster, metric, cell
)

SELECT
    file_group,
    file,
    cluster,
    metric,
    cell,
    CASE WHEN {{ is_cell('cell') }} AND lower(cell) NOT IN ('', 'nan') THEN try_cast(cell AS DOUBLE) END AS value,
    samples,
    {{ is_cell('cell') }} AS is_read
FROM counted

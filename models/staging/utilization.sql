/* ---
about: 'The wide utilization files unpivoted, one row per cell. Cells are not stored: every query reads the files again, so filter by one metric.'
partition: file_group
materialize: view
grain: [file, time_utc, position]
columns:
  file_group: VARCHAR cluster and metric
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  host_ip: VARCHAR address of the server
  gpu: INTEGER [1] GPU number; NULL where the column is not of a GPU
  time_utc: TIMESTAMP time of the row, UTC
  value: DOUBLE the measured value, in the unit of its metric; NULL where the cell is empty or nan
  column_name: VARCHAR column name as written
  position: BIGINT [1] place of the column after the time, from 1
  file: VARCHAR the file's path in its release
sources: docs/formats/utilization.md
--- */
WITH columns_of AS (           -- one row per file
    SELECT
        file,
        list(name ORDER BY position) AS names,
        list(host_ip ORDER BY position) AS hosts,
        list(gpu ORDER BY position) AS gpus
    FROM staging.utilization_columns
    GROUP BY file
),

numbers AS (
    SELECT
        file_group,
        file,
        cluster,
        metric,
        time_utc,
        CASE WHEN time_utc IS NOT NULL THEN try_cast(string_split(cells, ',') AS DOUBLE[]) END AS cells
    FROM staging.utilization_lines
),

cells AS (                     -- names are joined by position afterwards, to keep rows of cells small
    SELECT
        l.file_group,
        l.file,
        l.cluster,
        l.metric,
        l.time_utc,
        k.names,
        k.hosts,
        k.gpus,
        unnest(list_transform(
            range(1, array_length(l.cells) + 1),
            LAMBDA i: struct_pack(position := i, value := l.cells[i])
        )) AS one
    FROM numbers AS l
    JOIN columns_of AS k USING (file)
)

SELECT
    file_group,
    cluster,
    metric,
    hosts[one.position] AS host_ip,
    gpus[one.position] AS gpu,
    time_utc,
    CASE WHEN NOT coalesce(isnan(one.value), false) THEN one.value END AS value,
    names[one.position] AS column_name,
    one.position AS position,
    file
FROM cells

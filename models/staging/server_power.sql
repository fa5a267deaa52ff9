/* ---
about: Power of servers as measured by their management controllers (IPMI), one row per server, time and measure.
partition: file_group
grain: [file, node, time_utc, measure]
columns:
  file_group: VARCHAR the files of one kind of server
  file: VARCHAR the file's path in its release
  cluster: VARCHAR seren
  server_kind: VARCHAR gpu or cpu, by the file's name; NULL where the name does not tell
  server_type: VARCHAR A, B, C or D, by the file's name; in GPU_AB, rows with an empty cell are B, the others A
  node: VARCHAR the server's name as written
  host_ip: VARCHAR the server's address, where the name ends in one
  time_utc: TIMESTAMP time of the row, UTC
  measure: 'VARCHAR name of the column: Sys_Total_Power, CPU_Power, MEM_Power ...'
  watts: DOUBLE [W] power; NULL where the cell is empty or nan
  fits: BOOLEAN true if the line has a cell for each column, a time and a server, and this cell is a number or empty
checks:
  - fits
sources: docs/formats/utilization.md
--- */
WITH placed AS (               -- one row per file and column
    SELECT
        filename,
        unnest(list_transform(
            range(1, array_length(string_split(line, ',')) + 1),
            LAMBDA i: struct_pack(position := i, name := string_split(line, ',')[i])
        )) AS one
    FROM raw.acme_ipmi
    WHERE contains(line, 'Time')
),

headers AS (                   -- one row per file
    SELECT
        filename,
        count(*) AS n,
        max(one.position) FILTER (WHERE one.name = 'Time') AS time_at,
        max(one.position) FILTER (WHERE one.name = 'node') AS node_at,
        list(struct_pack(name := one.name, position := one.position) ORDER BY one.position)
            FILTER (WHERE NOT regexp_full_match(one.name, 'Time|node|\s*|Unnamed: [0-9]+')) AS measures
    FROM placed
    GROUP BY filename
),

files AS (
    SELECT
        h.*,
        f.file_group,
        f.release_path AS file,
        f.cluster,
        lower(nullif(regexp_extract(f.file_group, '[.](GPU|CPU)_', 1), '')) AS server_kind,
        nullif(regexp_extract(f.file_group, '[.](GPU|CPU)_([A-Z]+)_', 2), '') AS types
    FROM headers AS h
    JOIN raw.files AS f ON f.read_path = h.filename
),

lines AS (
    SELECT f.*, string_split(l.line, ',') AS cells
    FROM raw.acme_ipmi AS l
    JOIN files AS f USING (filename)
    WHERE l.line IS NULL OR NOT contains(l.line, 'Time')
),

typed AS (
    SELECT
        file_group,
        file,
        cluster,
        server_kind,
        types,
        cells[node_at] AS node,
        {{ moment_utc('cells[time_at]') }} AS time_utc,
        array_length(cells) = n AS is_whole,
        array_length(list_filter(measures, LAMBDA m: lower(cells[m.position]) IN ('', 'nan'))) > 0 AS has_gap,
        unnest(list_transform(measures, LAMBDA m: struct_pack(name := m.name, cell := cells[m.position]))) AS one
    FROM lines
)

SELECT
    file_group,
    file,
    cluster,
    server_kind,
    CASE WHEN types = 'AB' THEN CASE WHEN has_gap THEN 'B' ELSE 'A' END ELSE types END AS server_type,
    node,
    replace(nullif(regexp_extract(node, '([0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3})$', 1), ''), '-', '.') AS host_ip,
    time_utc,
    one.name AS measure,
    CASE WHEN {{ is_cell('one.cell') }} AND lower(one.cell) NOT IN ('', 'nan') THEN try_cast(one.cell AS DOUBLE) END AS watts,
    coalesce(is_whole AND time_utc IS NOT NULL AND regexp_full_match(node, '[A-Za-z0-9][A-Za-z0-9._:-]{0,99}') AND {{ is_cell('one.cell') }}, false) AS fits
FROM typed

/* ---
about: 'Columns of the wide utilization files, with the server or GPU of each.'
partition: file_group
grain: [file, position]
columns:
  file_group: VARCHAR cluster and metric
  file: VARCHAR the file's path in its release
  cluster: VARCHAR seren or kalos
  metric: VARCHAR name of the metric
  position: BIGINT [1] place of the column after the time, from 1
  name: VARCHAR column name as written
  host_ip: VARCHAR address of the server
  device: VARCHAR text after the last dash, a GPU number or a NIC (mlx5_0); NULL for a column of the whole server
  gpu: INTEGER [1] GPU number; NULL where the column is not of a GPU
  problem: VARCHAR NULL, five_parts (ip.N, a repeated column name when the file was written), twice, or no_address
checks:
  - warn: problem is null
    says: "{file_group}: the name of column {name} is in doubt, {problem}"
sources: docs/formats/utilization.md
--- */
WITH headers AS (
    SELECT
        f.file_group,
        f.release_path AS file,
        f.cluster,
        split_part(f.file_group, '.', -1) AS metric,
        string_split(substr(l.line, strpos(l.line, ',') + 1), ',') AS names
    FROM raw.acme_utilization AS l
    JOIN raw.files AS f ON f.read_path = l.filename
    WHERE starts_with(l.line, 'Time,')
),

placed AS (
    SELECT
        file_group,
        file,
        cluster,
        metric,
        unnest(list_transform(range(1, array_length(names) + 1), LAMBDA i: struct_pack(position := i, name := names[i]))) AS one
    FROM headers
),

named AS (                     -- the address, and the text after the last dash
    SELECT
        file_group,
        file,
        cluster,
        metric,
        one.position AS position,
        one.name AS name,
        CASE WHEN contains(one.name, '-') THEN regexp_extract(one.name, '^(.*)-[^-]*$', 1) ELSE one.name END AS address,
        nullif(regexp_extract(one.name, '-([^-]*)$', 1), '') AS device
    FROM placed
)

SELECT
    file_group,
    file,
    cluster,
    metric,
    position,
    name,
    nullif(regexp_extract(address, '^([0-9]{1,3}([.][0-9]{1,3}){3})', 1), '') AS host_ip,
    device,
    CASE WHEN regexp_matches(device, '^[0-9]{1,3}$') THEN try_cast(device AS INTEGER) END AS gpu,
    CASE
        WHEN NOT regexp_matches(address, '^[0-9]{1,3}([.][0-9]{1,3}){3,4}$') THEN 'no_address'
        WHEN regexp_matches(address, '^[0-9]{1,3}([.][0-9]{1,3}){4}$') OR contains(device, '.') THEN 'five_parts'
        WHEN count(*) OVER (PARTITION BY file, name) > 1 THEN 'twice'
    END AS problem
FROM named

/* ---
about: 'The workbook''s sheet of server NICs: which HCA (mlx5_n) is which NIC name, by server address.'
grain: [cluster, sheet_row]
columns:
  cluster: VARCHAR the cluster's folder
  sheet_row: INTEGER [1] row of the sheet, the header being 1
  server: VARCHAR GPU-n, from the address
  server_number: 'INTEGER [1] n of GPU-n: the last octet of 10.107.254.n, or 240 + the last octet of 10.107.255.n'
  host_ip: VARCHAR address of the server
  hca: VARCHAR name of the adapter in logs and NIC tables, mlx5_n
  nic: VARCHAR name of the network interface, ens...
checks:
  - unique(cluster, server, hca)
sources: docs/formats/workbook.md
--- */
WITH numbered AS (
    SELECT
        *,
        CAST(split_part(gpu_ip, '.', 4) AS INTEGER)
        + CASE WHEN split_part(gpu_ip, '.', 3) = '255' THEN 240 ELSE 0 END AS server_number
    FROM raw.gpu_nics
)

SELECT
    f.cluster,
    n.sheet_row,
    'GPU-' || n.server_number AS server,
    n.server_number,
    n.gpu_ip AS host_ip,
    n.nic_name1 AS hca,
    n.nic_name2 AS nic
FROM numbered AS n
JOIN raw.files AS f ON f.release_path = n.filename
WHERE f.status IN ('read', 'partial')

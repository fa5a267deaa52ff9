/* ---
about: Points of the distributions that were published as pickles, with metric and unit.
partition: file_group
grain: [file, series, point]
columns:
  file_group: VARCHAR group of the pickle files
  file: VARCHAR name of the pickle
  series: BIGINT [1] the pair of arrays in the file, from 1
  point: BIGINT [1] place in the arrays, from 1
  cluster: VARCHAR seren, kalos or philly
  metric: VARCHAR name of the metric
  unit: VARCHAR unit of the value
  figure: VARCHAR the figure that draws the series; NULL where none does
  value: DOUBLE a quantile, in the series' unit
  percent: DOUBLE [%] share of the samples up to this value
checks:
  - percent between 0 and 100
  - warn: metric is not null
    says: "{file}, series {series}, point {point}: the metric of this file is unknown"
sources: docs/formats/utilization.md
--- */
SELECT
    f.file_group,
    split_part(f.release_path, '/', -1) AS file,
    p.series,
    p.point,
    coalesce(s.cluster, f.cluster) AS cluster,
    s.metric,
    s.unit,
    s.figure,
    p.value,
    p.percent
FROM raw.acme_published AS p
JOIN raw.files AS f ON f.release_path = p.filename
LEFT JOIN reference.published_series AS s ON s.file = split_part(f.release_path, '/', -1) AND s.series = p.series

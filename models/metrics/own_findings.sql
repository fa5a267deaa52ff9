/* ---
about: Findings of a project of your own, listed after the others. The shipped table is empty; a model of this name in a project takes its place.
grain: [kind, cluster, where_]
columns:
  kind: VARCHAR name of the kind
  cluster: VARCHAR the cluster's folder
  where_: VARCHAR place of the finding, such as a link, a server or a task
  hour_utc: TIMESTAMP the hour; NULL where the finding is about all loaded hours
  severity: VARCHAR warning or note
  what: VARCHAR the kind in words
  number: DOUBLE number that the finding is about
  unit: VARCHAR unit of the number
  sentence: VARCHAR the finding in a sentence with numbers
  so_what: VARCHAR consequence of the finding
  look_further: VARCHAR a command that shows more
time: hour_utc
dimensions: [cluster, kind, severity]
measures:
  others: none
sources: docs/your-own-data.md
--- */
SELECT
    CAST(NULL AS VARCHAR) AS kind,
    CAST(NULL AS VARCHAR) AS cluster,
    CAST(NULL AS VARCHAR) AS where_,
    CAST(NULL AS TIMESTAMP) AS hour_utc,
    CAST(NULL AS VARCHAR) AS severity,
    CAST(NULL AS VARCHAR) AS what,
    CAST(NULL AS DOUBLE) AS number,
    CAST(NULL AS VARCHAR) AS unit,
    CAST(NULL AS VARCHAR) AS sentence,
    CAST(NULL AS VARCHAR) AS so_what,
    CAST(NULL AS VARCHAR) AS look_further
WHERE false

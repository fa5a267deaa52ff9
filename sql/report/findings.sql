/* ---
about: 'Findings to look at first: the first of each kind in full, and the names of the others.'
--- */
WITH placed AS (
    SELECT *, row_number() OVER (PARTITION BY kind ORDER BY rank) AS of_kind
    FROM metrics.findings
)
SELECT
    first(kind ORDER BY rank) AS kind,
    first(severity ORDER BY rank) AS severity,
    first(what ORDER BY rank) AS what,
    first(where_ ORDER BY rank) AS where_,
    first(number ORDER BY rank) AS number,
    first(unit ORDER BY rank) AS unit,
    first(sentence ORDER BY rank) AS sentence,
    strftime(first(hour_utc ORDER BY rank), '%Y-%m-%d %H:%M:%S') AS hour_utc,
    first(so_what ORDER BY rank) AS so_what,
    first(look_further ORDER BY rank) AS look_further,
    string_agg(where_, ', ' ORDER BY rank) FILTER (WHERE of_kind > 1) AS others,
    count(*) AS findings
FROM placed
GROUP BY kind
ORDER BY min(rank)

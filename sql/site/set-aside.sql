/* ---
about: Files that were not read completely, and lines that could not be read, with the reason.
--- */
WITH files AS (
    SELECT format, 'file' AS what, status, reason, count(*) AS found, min(release_path) AS first_place
    FROM raw.files
    WHERE reason IS NOT NULL
    GROUP BY ALL
),

lines AS (
    SELECT
        f.format,
        'line' AS what,
        'rejected' AS status,
        r.reason,
        count(*) AS found,
        min(r.file || ':' || r.line) AS first_place
    FROM raw.rejected_rows AS r
    JOIN raw.files AS f ON f.release_path = r.file
    GROUP BY ALL
)

FROM files
UNION ALL BY NAME
FROM lines
ORDER BY format, what, found DESC, reason, status

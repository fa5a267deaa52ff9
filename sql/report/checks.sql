/* ---
about: Number of checks by layer of the warehouse. A check of a table counts once, for all parts of the table.
--- */
WITH checked AS (
    SELECT model, check_text, bool_and(status = 'passed') AS passed, count(*) AS runs
    FROM meta.checks
    GROUP BY ALL
),
shown AS (
    SELECT
        split_part(model, '.', 1) AS layer,
        count(*) AS checks,
        count(*) FILTER (WHERE passed) AS passed,
        count(*) FILTER (WHERE NOT passed) AS not_passed,
        sum(runs)::BIGINT AS runs_over_parts
    FROM checked
    GROUP BY ALL
),
told AS (
    SELECT
        format(
            '{:,} checks passed, {}', sum(passed)::BIGINT,
            CASE sum(not_passed) WHEN 0 THEN 'none failed' ELSE format('{:,} did not', sum(not_passed)::BIGINT) END
        ) AS title,
        'A check is a condition on a table, counted once for all hours and parts of the table. '
        || CASE sum(not_passed) WHEN 0 THEN 'All hold.' ELSE 'The next table has those that did not pass.' END AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY layer

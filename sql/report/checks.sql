/* ---
about: Number of checks by layer of the warehouse. A check of a table counts once, for all parts of the table.
--- */
WITH checked AS (
    SELECT model, check_text, bool_and(status = 'passed') AS passed, count(*) AS runs
    FROM meta.checks
    GROUP BY ALL
)
SELECT
    split_part(model, '.', 1) AS layer,
    count(*) AS checks,
    count(*) FILTER (WHERE passed) AS passed,
    count(*) FILTER (WHERE NOT passed) AS not_passed,
    sum(runs)::BIGINT AS runs_over_parts
FROM checked
GROUP BY ALL
ORDER BY layer

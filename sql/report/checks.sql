/* ---
about: Results of the checks, by layer of the warehouse.
--- */
SELECT
    split_part(model, '.', 1) AS layer,
    count(*) AS checks,
    count(*) FILTER (WHERE status = 'passed') AS passed,
    count(*) FILTER (WHERE status <> 'passed') AS not_passed,
    string_agg(model || ' ' || partition || ': ' || check_text, '; ' ORDER BY model, partition, check_text)
        FILTER (WHERE status <> 'passed') AS which
FROM meta.checks
GROUP BY ALL
ORDER BY layer

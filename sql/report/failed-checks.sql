/* ---
about: 'Checks that did not pass: what they say about their first failing rows, and in which table and part of it.'
--- */
SELECT
    coalesce(f.sentence, concat(c.failures, ' failing rows')) AS says,
    c.model,
    nullif(c.partition, 'all') AS part,
    c.failures AS failing_rows,
    c.status,
    c.check_text AS condition
FROM meta.checks AS c
LEFT JOIN meta.failures AS f
    ON f.model = c.model AND f.partition = c.partition AND f.check_text = c.check_text AND f.position <= 3 AND f.sentence IS NOT NULL
WHERE c.status <> 'passed'
ORDER BY c.model, c.check_text, c.partition, f.position

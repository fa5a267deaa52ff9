/* ---
about: 'Checks that did not pass: what they say about their first failing rows, and in which table and part of it.'
--- */
WITH shown AS (
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
),
told AS (
    SELECT
        format('{} check{} to look at', count(DISTINCT concat(model, condition)), CASE count(DISTINCT concat(model, condition)) WHEN 1 THEN '' ELSE 's' END) AS title,
        'What each check says about its first failing rows, their table, and the hour or part of the table.' AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY model, condition, part, says

/* ---
about: 'Results of the checks, by layer of the warehouse: what those say that did not pass, then their conditions.'
--- */
WITH told AS (                      -- the first sentences of each check that did not pass
    SELECT model, partition, check_text, string_agg(sentence, '; ' ORDER BY position) AS sentences
    FROM meta.failures
    WHERE position <= 3
    GROUP BY ALL
)
SELECT
    split_part(model, '.', 1) AS layer,
    count(*) AS checks,
    count(*) FILTER (WHERE status = 'passed') AS passed,
    count(*) FILTER (WHERE status <> 'passed') AS not_passed,
    string_agg(
        concat(model, ' ', nullif(partition, 'all') || ' ', '(', status, '): ', coalesce(sentences, check_text)),
        ' · ' ORDER BY model, partition, check_text
    ) FILTER (WHERE status <> 'passed') AS says,
    string_agg(model || ' ' || partition || ': ' || check_text, '; ' ORDER BY model, partition, check_text)
        FILTER (WHERE status <> 'passed') AS which
FROM meta.checks
LEFT JOIN told USING (model, partition, check_text)
GROUP BY ALL
ORDER BY layer

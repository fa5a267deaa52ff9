/* ---
about: Published figures that the loaded data can test, with our value.
--- */
WITH shown AS (
    SELECT
        verdict,
        source,
        place,
        quantity,
        published_text AS published,
        our_value AS ours,
        difference,
        tolerance,
        unit,
        independent,
        computed_from,
        remark,
        claim
    FROM metrics.published_claims
    WHERE verdict <> 'no_data'
),
told AS (
    SELECT
        format(
            '{} of {} published figures are reproduced', count(*) FILTER (WHERE verdict = 'reproduced'),
            count(*) FILTER (WHERE verdict <> 'no_data')
        ) AS title,
        concat(
            format(
                'The others: {} differ, {} are contradicted; they come first in the table.', count(*) FILTER (WHERE verdict = 'differs'),
                count(*) FILTER (WHERE verdict = 'contradicted')
            ),
            nullif(format(' To test {} more, files are needed that are not loaded.', count(*) FILTER (WHERE verdict = 'no_data')),
                ' To test 0 more, files are needed that are not loaded.')
        ) AS conclusion
    FROM metrics.published_claims
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY CASE verdict WHEN 'contradicted' THEN 1 WHEN 'differs' THEN 2 ELSE 3 END, source, claim

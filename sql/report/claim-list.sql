/* ---
about: Published claims that the loaded data can test, with our value.
--- */
SELECT verdict, source, place, quantity, published_text AS published, our_value AS ours, difference, tolerance, unit, independent, computed_from, remark, claim
FROM metrics.published_claims
WHERE verdict <> 'no_data'
ORDER BY CASE verdict WHEN 'contradicted' THEN 1 WHEN 'differs' THEN 2 ELSE 3 END, source, claim

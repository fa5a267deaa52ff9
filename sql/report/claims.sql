/* ---
about: Published claims by source and verdict.
--- */
SELECT source, verdict, count(*) AS claims
FROM metrics.published_claims
GROUP BY source, verdict
ORDER BY source, verdict

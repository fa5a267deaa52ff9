/* ---
about: Published claims by their source, and what became of them here.
--- */
SELECT source, verdict, count(*) AS claims
FROM metrics.published_claims
GROUP BY source, verdict
ORDER BY source, verdict

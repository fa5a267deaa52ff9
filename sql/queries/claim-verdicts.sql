/* ---
about: Number of published figures of each source that are reproduced, differ, are contradicted, or have no data.
question: Do published figures come out?
--- */
SELECT source, count(*) FILTER (WHERE verdict = 'reproduced') AS reproduced,
    count(*) FILTER (WHERE verdict = 'differs') AS differs,
    count(*) FILTER (WHERE verdict = 'contradicted') AS contradicted,
    count(*) FILTER (WHERE verdict = 'no_data') AS no_data,
    count(*) FILTER (WHERE verdict = 'reproduced' AND independent) AS reproduced_independently
FROM metrics.published_claims
GROUP BY source
ORDER BY source

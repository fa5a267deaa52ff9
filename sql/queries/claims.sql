/* ---
about: Published figures beside our values, differing figures first.
question: Do published figures come out?
params:
  verdict: VARCHAR = null only reproduced, differs, contradicted or no_data
  source: VARCHAR = null only sources whose name contains this text
  limit: INTEGER = 40 number of rows
answer: [claim, verdict, published, ours, unit]
--- */
SELECT claim, verdict, published_text AS published, round(our_value, 4) AS ours, unit, independent, computed_from, quantity, remark, source, place
FROM metrics.published_claims
WHERE ($verdict IS NULL OR verdict = $verdict) AND ($source IS NULL OR contains(lower(source), lower($source)))
ORDER BY list_position(['contradicted', 'differs', 'reproduced', 'no_data'], verdict), claim
LIMIT $limit

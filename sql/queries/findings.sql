/* ---
about: Findings to look at first, one sentence each, with a command that shows more.
question: What should I look at first?
params:
  kind: VARCHAR = null only this kind, as uneven_leaf
  severity: VARCHAR = null only warning or note
--- */
SELECT sentence, severity, look_further, kind, where_, number, unit, so_what, hour_utc, cluster
FROM metrics.findings
WHERE ($kind IS NULL OR kind = $kind) AND ($severity IS NULL OR severity = $severity)
ORDER BY rank

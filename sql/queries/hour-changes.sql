/* ---
about: 'Changes between two hours: servers whose traffic grew or shrank most.'
question: What does a server do, and where is it plugged in?
params:
  before: TIMESTAMP = null the earlier hour (UTC); default the one before the latest
  after: TIMESTAMP = null the later hour (UTC); default the latest
  limit: INTEGER = 20 number of rows
answer: [server, before_bytes, after_bytes, change_bytes, times]
ranked: abs(change_bytes) desc
--- */
WITH hours AS (
    SELECT coalesce($after::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.server_hour)) AS later
),
chosen AS (
    SELECT later,
        coalesce($before::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.server_hour WHERE hour_utc < later)) AS earlier
    FROM hours
),
moved AS (
    SELECT h.cluster, h.server,
        coalesce(sum(h.rx_bytes + h.tx_bytes) FILTER (WHERE h.hour_utc = c.earlier), 0)::BIGINT AS before_bytes,
        coalesce(sum(h.rx_bytes + h.tx_bytes) FILTER (WHERE h.hour_utc = c.later), 0)::BIGINT AS after_bytes,
        c.earlier, c.later
    FROM metrics.server_hour AS h
    CROSS JOIN chosen AS c
    WHERE h.hour_utc IN (c.earlier, c.later)
    GROUP BY h.cluster, h.server, c.earlier, c.later
)
SELECT server, before_bytes, after_bytes, after_bytes - before_bytes AS change_bytes,
    round(after_bytes / nullif(before_bytes, 0), 3) AS times, earlier, later, cluster
FROM moved
WHERE earlier IS NOT NULL
ORDER BY abs(after_bytes - before_bytes) DESC, cluster, server
LIMIT $limit

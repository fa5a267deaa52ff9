/* ---
about: 'Locality of flows per hour, from the hour''s flow table: within a leaf, within a leaf group, or across groups.'
partition: hour_utc
grain: [cluster, hour_utc, locality]
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  locality: VARCHAR same_leaf, same_group or across_groups; unknown where the leaf of an end is not known
  flows: BIGINT [1] pairs of queue pairs
  packets: BIGINT [1] packets of reads, writes and sends
  packet_share: DOUBLE [1] share of the packets of all localities
  rtt_p50_ns: DOUBLE [ns] median round-trip time over the samples
  rtt_p99_ns: DOUBLE [ns] 99th percentile of the round-trip time
  nak_ratio: DOUBLE [1] negative acknowledgments over packets
time: hour_utc
measures:
  flows: sum except over locality, hour_utc
  packets: sum
  packet_share: none
  rtt_p50_ns, rtt_p99_ns: none, shown in us
  nak_ratio: none
checks:
  - locality in ('same_leaf', 'same_group', 'across_groups', 'unknown')
  - total(packets) = total(staging.hour_flow.packets)
sources: docs/metrics/flows.md
--- */
WITH paths AS (                -- pairs of leaves; a rule on names is slow on every sample
    SELECT
        source_switch,
        dest_switch,
        CASE
            WHEN source_switch = dest_switch THEN 'same_leaf'
            WHEN {{ leaf_group('source_switch') }} = {{ leaf_group('dest_switch') }} THEN 'same_group'
            ELSE 'across_groups'
        END AS locality
    FROM (SELECT DISTINCT source_switch, dest_switch FROM staging.hour_flow)
    WHERE source_switch IS NOT NULL AND dest_switch IS NOT NULL
),

samples AS (
    SELECT
        f.*,
        coalesce(p.locality, 'unknown') AS locality,
        {{ flow_key('f') }} AS flow
    FROM staging.hour_flow AS f
    LEFT JOIN paths AS p USING (source_switch, dest_switch)
),

totals AS (
    SELECT
        cluster,
        hour_utc,
        locality,
        count(DISTINCT flow) AS flows,
        sum(packets) AS packets,
        quantile_cont(rtt_ns, 0.5) AS rtt_p50_ns,
        quantile_cont(rtt_ns, 0.99) AS rtt_p99_ns,
        sum(nak_packets) AS nak_packets
    FROM samples
    GROUP BY ALL
)

SELECT
    cluster,
    hour_utc,
    locality,
    flows,
    packets,
    packets / nullif(sum(packets) OVER (PARTITION BY cluster, hour_utc), 0) AS packet_share,
    rtt_p50_ns,
    rtt_p99_ns,
    nak_packets / nullif(packets, 0) AS nak_ratio
FROM totals

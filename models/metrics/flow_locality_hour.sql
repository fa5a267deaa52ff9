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
  packet_share: sum except over cluster, hour_utc
  rtt_p50_ns, rtt_p99_ns: none, shown in us
  nak_ratio: none
checks:
  - locality in ('same_leaf', 'same_group', 'across_groups', 'unknown')
  - total(packets) = total(staging.hour_flow.packets)
sources: docs/metrics/flows.md
--- */
WITH paths AS (                -- pairs of leaves; a rule on names is slow on every sample
    SELECT
        *,
        CASE
            WHEN source_switch IS NULL OR dest_switch IS NULL THEN 'unknown'
            WHEN source_switch = dest_switch THEN 'same_leaf'
            WHEN {{ leaf_group('source_switch') }} = {{ leaf_group('dest_switch') }} THEN 'same_group'
            ELSE 'across_groups'
        END AS locality,
        CAST(dense_rank() OVER (ORDER BY cluster, hour_utc, locality) AS INTEGER) AS place
    FROM (SELECT DISTINCT cluster, hour_utc, source_switch, dest_switch FROM staging.hour_flow)
),

totals AS (                    -- by number, not by names, which would be held with each flow
    SELECT
        p.place,
        count(DISTINCT {{ flow_key('f') }}) AS flows,
        sum(f.packets) AS packets,
        quantile_cont(f.rtt_ns, [0.5, 0.99]) AS rtt_ns,
        sum(f.nak_packets) AS nak_packets
    FROM staging.hour_flow AS f
    JOIN paths AS p  -- check
        ON
            p.cluster = f.cluster
            AND p.hour_utc = f.hour_utc
            AND p.source_switch IS NOT DISTINCT FROM f.source_switch
            AND p.dest_switch IS NOT DISTINCT FROM f.dest_switch
    GROUP BY p.place
)

SELECT
    p.cluster,
    p.hour_utc,
    p.locality,
    t.flows,
    t.packets,
    t.packets / nullif(sum(t.packets) OVER (PARTITION BY p.cluster, p.hour_utc), 0) AS packet_share,
    t.rtt_ns[1] AS rtt_p50_ns,
    t.rtt_ns[2] AS rtt_p99_ns,
    t.nak_packets / nullif(t.packets, 0) AS nak_ratio
FROM totals AS t
JOIN (SELECT DISTINCT cluster, hour_utc, locality, place FROM paths) AS p USING (place)  -- check, grain

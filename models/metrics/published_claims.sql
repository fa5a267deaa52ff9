/* ---
about: Published figures about the traces, each beside our value from the loaded files, with a verdict.
grain: [claim]
columns:
  claim: VARCHAR name of the claim
  source: VARCHAR publication with the figure
  place: VARCHAR place in the publication
  quantity: VARCHAR quantity that the figure states
  published_value: DOUBLE the published figure; days since 1970 for a date
  published_text: VARCHAR the published figure as written
  unit: VARCHAR unit of the figure
  tolerance: DOUBLE largest difference at which our value still counts as equal
  relation: 'VARCHAR required relation of our value to the figure: equal, at_most, at_least, below or above'
  evidence: VARCHAR read (in the source), drawn (measured on a figure's lines), or quoted (seen only in quotations by others)
  computed: VARCHAR quantity of claim_quantities that the figure is compared with
  our_value: DOUBLE the same quantity computed from the loaded files; NULL where they lack the data
  computed_from: VARCHAR files and constants that our value is computed from
  independent: BOOLEAN true if our value has another source than the published one; false where both are from one file or document, NULL where nothing computes it
  difference: DOUBLE our_value - published_value
  verdict: VARCHAR reproduced, differs, contradicted (our value and another published figure both differ from it), or no_data
  remark: VARCHAR further evidence for or against the figure, or why our value is missing
dimensions: [source, place, unit, evidence, independent, verdict]
measures:
  others: none
checks:
  - verdict in ('reproduced', 'differs', 'contradicted', 'no_data')
  - relation in ('equal', 'at_most', 'at_least', 'below', 'above')
  - evidence in ('read', 'drawn', 'quoted')
  - (verdict = 'no_data') = (our_value is null)
  - verdict <> 'no_data' or remark is not null
  - (independent is null) = (computed is null)
  - warn: verdict in ('reproduced', 'no_data') or not starts_with(claim, 'totals/')
    says: "{source}: {published_text} {quantity} are published ({place}), the loaded files have {our_value:,.0f}"
sources: docs/metrics/claims.md
--- */
WITH stated AS (               -- reviewed claims, and totals of the mappings; of less than half a total only a part is loaded, which says nothing
    SELECT * FROM reference.claims
    UNION ALL BY NAME
    SELECT
        q.quantity AS claim,
        t.source,
        t.place,
        t.quantity,
        CAST(t.published_text AS DOUBLE) AS published_value,
        t.published_text,
        CASE t.quantity WHEN 'gpu_seconds' THEN 'GPU s' WHEN 'gpu_hours' THEN 'GPU h' WHEN 'gpus' THEN 'GPUs' ELSE t.quantity END AS unit,
        t.tolerance,
        'equal' AS relation,
        'read' AS evidence,
        claim AS computed
    FROM ({{ mapped_totals() }}) AS t
    JOIN metrics.claim_quantities AS q ON q.quantity = concat_ws('/', 'totals', t.trace, t.quantity)  -- filter
    WHERE q.value >= CAST(t.published_text AS DOUBLE) / 2
),

inputs AS (                    -- the most specific line of claim_inputs
    SELECT c.claim, i.computed_from, i.independent
    FROM stated AS c
    JOIN reference.claim_inputs AS i ON starts_with(concat(c.computed, '/'), concat(i.quantity, '/'))
    QUALIFY row_number() OVER (PARTITION BY c.claim ORDER BY length(i.quantity) DESC) = 1
),

loaded AS (                    -- traces with quantities
    SELECT DISTINCT split_part(quantity, '/', 1) AS cluster, contains(quantity, '/utilization/') AS is_utilization
    FROM metrics.claim_quantities
),

held AS (
    SELECT
        c.*,
        q.value AS our_value,
        i.computed_from,
        i.independent,
        q.value - c.published_value AS difference,
        CASE c.relation        -- the small margin allows for the last bits of a quotient
            WHEN 'equal' THEN abs(difference) <= c.tolerance + 1e-9
            WHEN 'at_most' THEN difference <= 1e-9
            WHEN 'at_least' THEN difference >= -1e-9
            WHEN 'below' THEN difference < 0
            WHEN 'above' THEN difference > 0
        END AS agrees,
        split_part(c.computed, '/', 1) AS of_cluster,
        contains(c.computed, '/utilization/') AS of_utilization,
        CASE
            WHEN c.computed IS NULL THEN 'no file tells it'
            WHEN q.value IS NOT NULL THEN NULL
            WHEN l.cluster IS NOT NULL THEN 'the loaded files do not give it'
            ELSE concat(
                'not loaded: ', if(of_utilization, 'utilization of ', 'jobs of '),
                CASE of_cluster WHEN 'acme' THEN 'both seren and kalos' WHEN 'all' THEN 'all five clusters' ELSE of_cluster END
            )
        END AS missing
    FROM stated AS c
    LEFT JOIN inputs AS i USING (claim)
    LEFT JOIN metrics.claim_quantities AS q ON q.quantity = c.computed
    LEFT JOIN loaded AS l
        ON l.cluster = split_part(c.computed, '/', 1) AND l.is_utilization = contains(c.computed, '/utilization/')
),

others AS (                    -- another figure for the same quantity that differs by more than both tolerances
    SELECT
        a.claim,
        string_agg(concat(b.published_text, ' in ', b.claim), ', ' ORDER BY b.claim) AS figures
    FROM stated AS a
    JOIN stated AS b
        ON
            b.computed = a.computed AND a.relation = 'equal' AND b.relation = 'equal'
            AND abs(a.published_value - b.published_value) > a.tolerance + b.tolerance + 1e-9
    GROUP BY a.claim
)

SELECT
    a.* EXCLUDE (missing, agrees, of_cluster, of_utilization),
    CASE
        WHEN a.our_value IS NULL THEN 'no_data'
        WHEN a.agrees THEN 'reproduced'
        WHEN o.figures IS NOT NULL THEN 'contradicted'
        ELSE 'differs'
    END AS verdict,
    nullif(
        concat_ws(
            '; ',
            a.missing,
            CASE WHEN a.evidence = 'quoted' THEN 'seen only as quoted by others' END,
            CASE WHEN o.figures IS NOT NULL THEN concat('other figures: ', o.figures) END
        ),
        ''
    ) AS remark
FROM held AS a
LEFT JOIN others AS o USING (claim)

/* ---
about: What was published about the traces, each figure beside ours from the files at hand, and whether they agree.
grain: [claim]
columns:
  claim: VARCHAR name of the claim
  source: VARCHAR where it was published
  place: VARCHAR where in it
  quantity: VARCHAR what it says
  published_value: DOUBLE the figure; days since 1970 for a date
  published_text: VARCHAR the figure as written
  unit: VARCHAR its unit
  tolerance: DOUBLE how far ours may lie from it and be the same
  relation: 'VARCHAR equal, or what a bound says ours is: at_most, at_least, below, above'
  evidence: VARCHAR read in the source, drawn (measured on a figure's lines), or quoted (seen only as others quote it)
  computed: VARCHAR the quantity of claim_quantities that it is held against
  our_value: DOUBLE the same quantity from the files at hand; NULL where they do not give it
  independent: BOOLEAN whether our value has another source than the published one; false where both are from one file of the release, NULL where nothing computes it
  difference: DOUBLE our_value - published_value
  verdict: VARCHAR reproduced, differs, contradicted (ours differs, and so does another published figure), or no_data
  remark: VARCHAR what else speaks for or against it; why there is no value of ours
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
sources: docs/metrics/claims.md
--- */
WITH loaded AS (               -- what there are quantities of
    SELECT DISTINCT split_part(quantity, '/', 1) AS cluster, contains(quantity, '/utilization/') AS is_utilization
    FROM metrics.claim_quantities
),

held AS (
    SELECT
        c.* EXCLUDE independent,
        q.value AS our_value,
        c.independent,
        q.value - c.published_value AS difference,
        CASE
            WHEN c.computed IS NULL THEN 'no file tells it'
            WHEN q.value IS NULL AND l.cluster IS NOT NULL THEN 'the loaded files do not give it'
            WHEN q.value IS NULL
                THEN concat(
                    'not loaded: ',
                    CASE WHEN contains(c.computed, '/utilization/') THEN 'utilization of ' ELSE 'jobs of ' END,
                    CASE split_part(c.computed, '/', 1)
                        WHEN 'acme' THEN 'both seren and kalos'
                        WHEN 'all' THEN 'all five clusters'
                        ELSE split_part(c.computed, '/', 1)
                    END
                )
        END AS missing
    FROM reference.claims AS c
    LEFT JOIN metrics.claim_quantities AS q ON q.quantity = c.computed
    LEFT JOIN loaded AS l
        ON l.cluster = split_part(c.computed, '/', 1) AND l.is_utilization = contains(c.computed, '/utilization/')
),

agreed AS (                    -- the hair is for the last bits of a quotient
    SELECT
        *,
        CASE relation
            WHEN 'equal' THEN abs(difference) <= tolerance + 1e-9
            WHEN 'at_most' THEN difference <= 1e-9
            WHEN 'at_least' THEN difference >= -1e-9
            WHEN 'below' THEN difference < 0
            WHEN 'above' THEN difference > 0
        END AS agrees
    FROM held
),

others AS (                    -- another figure for the same quantity, further off than both are exact
    SELECT
        a.claim,
        string_agg(concat(b.published_text, ' in ', b.claim), ', ' ORDER BY b.claim) AS figures
    FROM reference.claims AS a
    JOIN reference.claims AS b
        ON
            b.computed = a.computed AND a.relation = 'equal' AND b.relation = 'equal'
            AND abs(a.published_value - b.published_value) > a.tolerance + b.tolerance + 1e-9
    GROUP BY a.claim
)

SELECT
    a.* EXCLUDE (missing, agrees),
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
FROM agreed AS a
LEFT JOIN others AS o USING (claim)

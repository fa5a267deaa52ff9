/* ---
about: 'Expected bytes per NIC and iteration to synchronize the replicas of the model: nominal (textbook algorithm) and as implemented by the framework.'
grain: [cluster, task]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  synchronized_params: BIGINT [1] parameters of the whole model whose gradients leave a server
  data_parallel: BIGINT [1] ranks that average the gradients
  servers: BIGINT [1] servers of the task
  nics: BIGINT [1] NICs per server
  nominal_rule: VARCHAR textbook algorithm, all_reduce, zero_1, zero_2 or zero_3; NULL where no bytes are expected
  nominal_volume: BIGINT [B] nominal bytes per parameter
  implemented_rule: VARCHAR algorithm that the framework implements, see docs/metrics/tasks.md
  implemented_volume: BIGINT [B] implemented bytes per parameter, over all micro batches
  expected_nominal_bytes: BIGINT [B] nominal bytes that one NIC sends, and receives, per iteration
  expected_implemented_bytes: BIGINT [B] implemented bytes that one NIC sends, and receives, per iteration
  reason: VARCHAR why no bytes are expected, in words; NULL where bytes are expected
dimensions: [cluster, task, nominal_rule, implemented_rule, reason]
measures:
  expected_nominal_bytes, expected_implemented_bytes: none, shown in GB
  others: none
checks:
  - nominal_rule in ('all_reduce', 'zero_1', 'zero_2', 'zero_3') or nominal_rule is null
  - implemented_rule in ('all_reduce', 'scatter_gather', 'all_reduce_gather', 'scatter_gather_each', 'all_reduce_gather_each', 'gather_scatter_each') or implemented_rule is null
  - expected_nominal_bytes >= 0 or expected_nominal_bytes is null
  - (expected_nominal_bytes is null) = (reason is not null)
  - (expected_implemented_bytes is null) = (reason is not null)
  - none: SELECT cluster, task FROM staging.task_settings ANTI JOIN this USING (cluster, task)
sources: docs/metrics/tasks.md
--- */
-- A rank of a ring of n sends (n - 1) / n of the data that the ring reduces, gathers or scatters, in an all-reduce twice as
-- much. The ring leaves each server once, so a server sends what one rank sends, spread over its NICs. Tensor-parallel ranks of
-- a server hold different parts, together the model. Where they are on several servers, or a pipeline sends more, bytes are NULL.
WITH sizes AS (
    SELECT cluster, task, count(*) AS pods, min(ranks) AS ranks, max(ranks) AS most_ranks, count(DISTINCT server) AS servers
    FROM topology.task_pods
    GROUP BY cluster, task
),

cards AS (
    SELECT cluster, task, pod, count(*) AS nics
    FROM topology.task_ports
    GROUP BY cluster, task, pod
),

card_counts AS (
    SELECT cluster, task, CASE WHEN min(nics) = max(nics) THEN min(nics) END AS nics
    FROM cards
    GROUP BY cluster, task
),

rules AS (
    SELECT
        s.cluster,
        s.task,
        s.params,
        s.data_parallel,
        z.servers,
        c.nics,
        s.gradient_bytes AS g,
        s.weight_bytes AS w,
        s.accumulation AS k,
        CASE
            WHEN s.pipeline_parallel > 1
                THEN 'a pipeline of ' || s.pipeline_parallel || ' stages: what they send each other is not modelled'
            WHEN z.servers < z.pods THEN 'pods share a server or run where it is not known'
            WHEN z.servers = 1 THEN 'one server: nothing has to leave it'
            WHEN z.ranks < z.most_ranks THEN 'pods have different numbers of ranks'
            WHEN z.ranks % s.tensor_parallel <> 0
                THEN 'tensor parallel over several servers: what its ranks send each other is not modelled'
            WHEN s.data_parallel * s.tensor_parallel <> z.ranks * z.pods
                THEN 'data and tensor parallel sizes do not make up the ranks'
            WHEN s.params IS NULL THEN 'no line tells the number of parameters'
            WHEN c.nics IS NULL THEN 'the NICs are not known or differ in number by server'
            WHEN z.ranks IS NULL OR s.data_parallel IS NULL OR s.tensor_parallel IS NULL OR s.pipeline_parallel IS NULL
                THEN 'no line tells the parallel strategy'
            WHEN s.gradient_bytes IS NULL OR s.weight_bytes IS NULL THEN 'no line tells the precision'
            WHEN s.accumulation IS NULL AND s.zero_stage >= 2 THEN 'no line tells the micro batches of an iteration'
        END AS reason,
        CASE
            WHEN s.trainer = 'deepspeed' AND s.zero_stage = 1 THEN 'zero_1'
            WHEN s.trainer = 'deepspeed' AND s.zero_stage = 2 THEN 'zero_2'
            WHEN s.trainer = 'deepspeed' AND s.zero_stage = 3 THEN 'zero_3'
            WHEN s.trainer = 'megatron' AND s.distributed_optimizer THEN 'zero_1'
            ELSE 'all_reduce'
        END AS nominal_rule,
        CASE
            WHEN s.trainer = 'megatron' AND s.distributed_optimizer THEN 'scatter_gather'
            WHEN s.trainer = 'deepspeed' AND s.zero_stage = 1 AND s.reduce_scatter AND NOT coalesce(s.multi_rank_allreduce, false)
                THEN 'scatter_gather'
            WHEN s.trainer = 'deepspeed' AND s.zero_stage = 1 THEN 'all_reduce_gather'
            WHEN s.trainer = 'deepspeed' AND s.zero_stage = 2 AND s.reduce_scatter AND NOT coalesce(s.multi_rank_allreduce, false)
                THEN 'scatter_gather_each'
            WHEN s.trainer = 'deepspeed' AND s.zero_stage = 2 THEN 'all_reduce_gather_each'
            WHEN s.trainer = 'deepspeed' AND s.zero_stage = 3 THEN 'gather_scatter_each'
            ELSE 'all_reduce'
        END AS implemented_rule
    FROM staging.task_settings AS s
    JOIN sizes AS z USING (cluster, task)  -- check
    LEFT JOIN card_counts AS c USING (cluster, task)  -- once
),

volumes AS (                   -- bytes per parameter; g: of a gradient, w: of a weight (nominal for both), k: micro batches, each reduced in rules with _each
    SELECT
        *,
        CASE WHEN nominal_rule = 'zero_3' THEN 3 * w ELSE 2 * w END AS nominal_volume,
        CASE implemented_rule
            WHEN 'all_reduce' THEN 2 * g
            WHEN 'scatter_gather' THEN g + w
            WHEN 'all_reduce_gather' THEN 2 * g + w
            WHEN 'scatter_gather_each' THEN k * g + w
            WHEN 'all_reduce_gather_each' THEN 2 * k * g + w
            WHEN 'gather_scatter_each' THEN k * (g + 2 * w)
        END AS implemented_volume
    FROM rules
)

SELECT
    cluster,
    task,
    CASE WHEN reason IS NULL THEN params END AS synchronized_params,
    data_parallel,
    servers,
    nics,
    CASE WHEN reason IS NULL THEN nominal_rule END AS nominal_rule,
    CASE WHEN reason IS NULL THEN nominal_volume END AS nominal_volume,
    CASE WHEN reason IS NULL THEN implemented_rule END AS implemented_rule,
    CASE WHEN reason IS NULL THEN implemented_volume END AS implemented_volume,
    CASE WHEN reason IS NULL THEN params * nominal_volume * (data_parallel - 1) // (data_parallel * nics) END AS expected_nominal_bytes,
    CASE WHEN reason IS NULL THEN params * implemented_volume * (data_parallel - 1) // (data_parallel * nics) END AS expected_implemented_bytes,
    reason
FROM volumes

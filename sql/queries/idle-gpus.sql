/* ---
about: 'Free GPUs by model, as means over time: whole ones between two bounds, and fragments that jobs with a part of a GPU leave.'
question: How long do jobs run and wait?
aliases: [free-gpus, fragments]
params:
  trace: VARCHAR = null only this trace, as alibaba_v2023
  cluster: VARCHAR = null only this cluster
answer: [trace, cluster, gpu_model, gpus, free_gpus, whole_gpus_min, whole_gpus_max, fewest_whole_gpus]
--- */
-- fewest_whole_gpus: the least of whole_gpus_max at any time
SELECT trace, cluster, gpu_model, max(gpus) AS gpus,
    round(sum(free_gpus * (end_seconds - begin_seconds))::DOUBLE / sum(end_seconds - begin_seconds), 2) AS free_gpus,
    round(sum(whole_gpus_min * (end_seconds - begin_seconds))::DOUBLE / sum(end_seconds - begin_seconds), 2) AS whole_gpus_min,
    round(sum(whole_gpus_max * (end_seconds - begin_seconds))::DOUBLE / sum(end_seconds - begin_seconds), 2) AS whole_gpus_max,
    round(sum(fragment_gpus_min * (end_seconds - begin_seconds))::DOUBLE / sum(end_seconds - begin_seconds), 2) AS fragment_gpus_min,
    round(sum(fragment_gpus_max * (end_seconds - begin_seconds))::DOUBLE / sum(end_seconds - begin_seconds), 2) AS fragment_gpus_max,
    min(whole_gpus_max) AS fewest_whole_gpus, round(sum(end_seconds - begin_seconds) / 3600, 1) AS hours
FROM metrics.idle_gpus
WHERE end_seconds IS NOT NULL AND ($trace IS NULL OR trace = $trace) AND ($cluster IS NULL OR cluster = $cluster)
GROUP BY trace, cluster, gpu_model
ORDER BY trace, cluster, gpu_model

/* ---
about: 'AcmeTrace''s cluster_summary.csv, one row per cluster, five clusters. Its Seren row counts other jobs than the trace: compare before use.'
grain: [cluster]
columns:
  cluster: VARCHAR seren, kalos, philly, helios or pai
  jobs: BIGINT [1] job_num; for PAI 223,835 more than the sum of CPU and GPU jobs
  cpu_jobs: BIGINT [1] cpu_job_num
  gpu_jobs: BIGINT [1] gpu_job_num
  gpu_mean_duration_seconds: DOUBLE [s] avg_run_time_gpu; includes queueing where the trace's duration does
  gpu_mean_queue_seconds: DOUBLE [s] avg_que_time_gpu
  mean_gpus: DOUBLE [1] avg_gpu_num, of GPU jobs
  gpu_median_duration_seconds: DOUBLE [s] med_run_time_gpu
  gpu_median_queue_seconds: DOUBLE [s] med_que_time_gpu
  median_gpus: DOUBLE [1] med_gpu_num
  gpu_max_duration_seconds: DOUBLE [s] max_run_time_gpu
  max_gpus: DOUBLE [1] max_gpu
  gpu_completed_share: DOUBLE [1] complete_rate_gpu
  gpu_cancelled_share: DOUBLE [1] cancel_rate_gpu
  gpu_failed_share: 'DOUBLE [1] fail_rate_gpu: jobs that neither completed nor were cancelled'
  completed_gpu_seconds: DOUBLE [s] complete_gpu_time
  cancelled_gpu_seconds: DOUBLE [s] cancel_gpu_time
  failed_gpu_seconds: DOUBLE [s] fail_gpu_time
  completed_gpu_time_share: DOUBLE [1] complete_rate_gpu_time
  cancelled_gpu_time_share: DOUBLE [1] cancel_rate_gpu_time
  failed_gpu_time_share: DOUBLE [1] fail_rate_gpu_time
  cpu_mean_duration_seconds: DOUBLE [s] avg_run_time_cpu
  cpu_mean_queue_seconds: DOUBLE [s] avg_que_time_cpu
  cpu_median_duration_seconds: DOUBLE [s] med_run_time_cpu
  cpu_median_queue_seconds: DOUBLE [s] med_que_time_cpu
  cpu_completed_share: DOUBLE [1] complete_rate_cpu
  cpu_cancelled_share: DOUBLE [1] cancel_rate_cpu
  cpu_failed_share: DOUBLE [1] fail_rate_cpu
sources: docs/formats/acme_jobs.md
--- */
SELECT
    lower(id) AS cluster,
    CAST(round(job_num) AS BIGINT) AS jobs,
    CAST(round(cpu_job_num) AS BIGINT) AS cpu_jobs,
    CAST(round(gpu_job_num) AS BIGINT) AS gpu_jobs,
    avg_run_time_gpu AS gpu_mean_duration_seconds,
    avg_que_time_gpu AS gpu_mean_queue_seconds,
    avg_gpu_num AS mean_gpus,
    med_run_time_gpu AS gpu_median_duration_seconds,
    med_que_time_gpu AS gpu_median_queue_seconds,
    med_gpu_num AS median_gpus,
    max_run_time_gpu AS gpu_max_duration_seconds,
    max_gpu AS max_gpus,
    complete_rate_gpu AS gpu_completed_share,
    cancel_rate_gpu AS gpu_cancelled_share,
    fail_rate_gpu AS gpu_failed_share,
    complete_gpu_time AS completed_gpu_seconds,
    cancel_gpu_time AS cancelled_gpu_seconds,
    fail_gpu_time AS failed_gpu_seconds,
    complete_rate_gpu_time AS completed_gpu_time_share,
    cancel_rate_gpu_time AS cancelled_gpu_time_share,
    fail_rate_gpu_time AS failed_gpu_time_share,
    avg_run_time_cpu AS cpu_mean_duration_seconds,
    avg_que_time_cpu AS cpu_mean_queue_seconds,
    med_run_time_cpu AS cpu_median_duration_seconds,
    med_que_time_cpu AS cpu_median_queue_seconds,
    complete_rate_cpu AS cpu_completed_share,
    cancel_rate_cpu AS cpu_cancelled_share,
    fail_rate_cpu AS cpu_failed_share
FROM raw.acme_cluster_summary

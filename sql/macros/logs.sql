{# Names of tasks and pods in the release path of a log. Each macro renders to one expression. -#}
{# the folder of the task: cluster/taskinfo/20240429-0613-4/x.log -#}
{% macro task_name(path) %}regexp_extract({{ path }}, '^[^/]*/taskinfo/([^/]+)/', 1){% endmacro %}
{# the pod: the path below the task's folder, without torchrun's attempt_0/, without .log, .log.1 or .log.2024-05-23 -#}
{% macro pod_name(path) %}regexp_replace(regexp_replace(regexp_replace({{ path }}, '^[^/]*/taskinfo/[^/]+/', ''), '(^|/)attempt_[0-9]+/', '\1', 'g'), '([.]log([.][0-9]{1,3}|[.-][0-9]{4}-?[0-9]{2}-?[0-9]{2}[^/]*)?)?([.]gz|[.]zst)?$', ''){% endmacro %}
{# the order in which the files of one pod were written: restarts of torchrun, then .log.2, .log.1, dated files, .log -#}
{% macro file_order(path) %}coalesce(try_cast(regexp_extract({{ path }}, '/attempt_([0-9]+)/', 1) AS BIGINT), -1), -coalesce(try_cast(regexp_extract({{ path }}, '[.]log[.]([0-9]{1,3})([.]gz|[.]zst)?$', 1) AS BIGINT), 0), nullif(regexp_extract({{ path }}, '[.]log[.-]([0-9]{4}-?[0-9]{2}-?[0-9]{2}[^/]*)$', 1), '') NULLS LAST, {{ path }}{% endmacro %}
{# integer value of a text; NULL where the text is no integer of up to 18 digits -#}
{% macro whole(text) %}CASE WHEN regexp_matches({{ text }}, '^[0-9]{1,18}$') THEN CAST({{ text }} AS BIGINT) END{% endmacro %}
{# the only value in a group for rows that meet a condition; NULL where there are several values -#}
{% macro only(column, condition) %}CASE WHEN min({{ column }}) FILTER (WHERE {{ condition }}) = max({{ column }}) FILTER (WHERE {{ condition }}) THEN min({{ column }}) FILTER (WHERE {{ condition }}) END{% endmacro %}
{# true if a transport numbers NICs as in the list of InfiniBand and RoCE NICs -#}
{% macro is_ib(transport) %}regexp_matches({{ transport }}, '^NET/(g?IB|.*RDMA)'){% endmacro %}

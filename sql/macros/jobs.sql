{# Cells of job tables. Each macro renders to one expression. -#}
{# UTC timestamp of a text such as 2023-03-01 00:18:22+08:00; fractions of a second are cut; the two offsets found in files are tested first -#}
{% macro utc_of(written) %}CAST(substr({{ written }}, 1, 19) AS TIMESTAMP) - CASE right({{ written }}, 6) WHEN '+00:00' THEN 0 WHEN '+08:00' THEN 480 ELSE CAST(left(right({{ written }}, 6), 3) AS BIGINT) * 60 + CAST(left(right({{ written }}, 6), 1) || right({{ written }}, 2) AS BIGINT) END * INTERVAL '1 minute'{% endmacro %}
{# an integer count; -1, which is no valid count, where the number is not an integer -#}
{% macro count_of(number) %}CASE WHEN {{ number }} = CAST(floor({{ number }}) AS DOUBLE) THEN CAST(round({{ number }}) AS BIGINT) WHEN {{ number }} IS NOT NULL THEN -1 END{% endmacro %}
{# the smallest power of two from 1, 2, 4 .. 2^21 that is at least so many seconds; NULL beyond -#}
{% macro power_of_two(seconds) %}CASE{% for _ in 'x' * 22 %} WHEN {{ seconds }} <= {{ 2 ** loop.index0 }} THEN {{ 2 ** loop.index0 }}{% endfor %} END{% endmacro %}
{# 1, 2, 4 .. 2^21 as a list -#}
{% macro powers_of_two() %}[{% for _ in 'x' * 22 %}{{ ', ' if loop.index0 }}{{ 2 ** loop.index0 }}{% endfor %}]{% endmacro %}
{# share of a number in its sum over a window; NULL where the sum is 0 -#}
{% macro share_of_sum(number, window) %}{{ number }}::DOUBLE / nullif(sum({{ number }}) OVER {{ window }}, 0)::DOUBLE{% endmacro %}

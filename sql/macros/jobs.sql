{# Cells of job tables. Each macro renders to one expression. -#}
{# the moment of a text such as 2023-03-01 00:18:22+08:00, in UTC; fractions of a second are cut; the two offsets that files have come first -#}
{% macro utc_of(written) %}CAST(substr({{ written }}, 1, 19) AS TIMESTAMP) - CASE right({{ written }}, 6) WHEN '+00:00' THEN 0 WHEN '+08:00' THEN 480 ELSE CAST(left(right({{ written }}, 6), 3) AS BIGINT) * 60 + CAST(left(right({{ written }}, 6), 1) || right({{ written }}, 2) AS BIGINT) END * INTERVAL '1 minute'{% endmacro %}
{# a whole number as such; -1, which no count is, where it is not whole -#}
{% macro count_of(number) %}CASE WHEN {{ number }} = CAST(floor({{ number }}) AS DOUBLE) THEN CAST(round({{ number }}) AS BIGINT) WHEN {{ number }} IS NOT NULL THEN -1 END{% endmacro %}
{# the smallest of 1, 2, 4 .. 2^21 seconds that is not less; NULL beyond -#}
{% macro power_of_two(seconds) %}CASE{% for _ in 'x' * 22 %} WHEN {{ seconds }} <= {{ 2 ** loop.index0 }} THEN {{ 2 ** loop.index0 }}{% endfor %} END{% endmacro %}
{# 1, 2, 4 .. 2^21 as a list -#}
{% macro powers_of_two() %}[{% for _ in 'x' * 22 %}{{ ', ' if loop.index0 }}{{ 2 ** loop.index0 }}{% endfor %}]{% endmacro %}
{# the part that a number is of its sum over a window; NULL where that is 0 -#}
{% macro share_of_sum(number, window) %}{{ number }}::DOUBLE / nullif(sum({{ number }}) OVER {{ window }}, 0)::DOUBLE{% endmacro %}

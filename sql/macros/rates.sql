{# The rule for rates, docs/metrics/rates.md. Each macro renders to one expression. -#}
{# bytes that a 32-bit counter loses in a wrap: 2^32 -#}
{% macro wrap() %}4294967296{% endmacro %}
{# true for a wrap: a negative delta of a management port where delta + 2^32 is possible at 1 Gbit/s (125,000 B per ms) since the port's previous row; the first row of an hour has no previous row and is never a wrap -#}
{% macro is_wrap(raw, is_management, interval_ms) %}coalesce({{ raw }} < 0 AND {{ is_management }} AND {{ raw }} + {{ wrap() }} <= CAST({{ interval_ms }} AS BIGINT) * 125000, false){% endmacro %}
{# true for a reset: any other negative delta -#}
{% macro is_reset(raw, is_management, interval_ms) %}({{ raw }} < 0 AND NOT {{ is_wrap(raw, is_management, interval_ms) }}){% endmacro %}
{# bytes of a stored delta: 2^32 is added to a wrap, a reset counts as 0 -#}
{% macro corrected_bytes(raw, is_management, interval_ms) %}CASE WHEN {{ raw }} >= 0 THEN {{ raw }} WHEN {{ is_wrap(raw, is_management, interval_ms) }} THEN {{ raw }} + {{ wrap() }} ELSE 0 END{% endmacro %}
{# start of the window of a refresh; the window of the first row of an hour starts with the hour and includes its first millisecond -#}
{% macro window_start(previous_ms, anchor_ms) %}CASE WHEN {{ previous_ms }} IS NULL THEN 0 ELSE greatest({{ anchor_ms }}, {{ previous_ms }} - 1000, 1) END{% endmacro %}

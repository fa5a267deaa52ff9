{# The rule for rates, docs/metrics/rates.md. Each macro renders to one expression. -#}
{# what a counter of 32 bits loses when it wraps: 2^32 -#}
{% macro wrap() %}4294967296{% endmacro %}
{# true for a wrap: a negative delta of a management port whose 2^32 more is possible at 1 Gbit/s (125,000 B a ms) since the port's previous row; a first row of an hour has none, and is never one -#}
{% macro is_wrap(raw, is_management, interval_ms) %}coalesce({{ raw }} < 0 AND {{ is_management }} AND {{ raw }} + {{ wrap() }} <= CAST({{ interval_ms }} AS BIGINT) * 125000, false){% endmacro %}
{# true for a reset: any other negative delta -#}
{% macro is_reset(raw, is_management, interval_ms) %}({{ raw }} < 0 AND NOT {{ is_wrap(raw, is_management, interval_ms) }}){% endmacro %}
{# bytes of a stored delta: 2^32 is added to a wrap, a reset is left out -#}
{% macro corrected_bytes(raw, is_management, interval_ms) %}CASE WHEN {{ raw }} >= 0 THEN {{ raw }} WHEN {{ is_wrap(raw, is_management, interval_ms) }} THEN {{ raw }} + {{ wrap() }} ELSE 0 END{% endmacro %}
{# where the window of a refresh starts; a first row has no predecessor in its hour: its window opens with the hour, and has the first millisecond -#}
{% macro window_start(previous_ms, anchor_ms) %}CASE WHEN {{ previous_ms }} IS NULL THEN 0 ELSE greatest({{ anchor_ms }}, {{ previous_ms }} - 1000, 1) END{% endmacro %}

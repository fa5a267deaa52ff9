{# The rule for rates, docs/metrics/rates.md. Each macro renders to one expression. -#}
{# bytes of a stored delta: a negative one is a 32-bit wrap of a management port, else a reset and left out -#}
{% macro corrected_bytes(raw, is_management) %}CASE WHEN {{ raw }} >= 0 THEN {{ raw }} WHEN {{ is_management }} THEN {{ raw }} + 4294967296 ELSE 0 END{% endmacro %}
{# where the window of a refresh starts; a first row has no predecessor in its hour: its window opens with the hour, and has the first millisecond -#}
{% macro window_start(previous_ms, anchor_ms) %}CASE WHEN {{ previous_ms }} IS NULL THEN 0 ELSE greatest({{ anchor_ms }}, {{ previous_ms }} - 1000, 1) END{% endmacro %}

{# Lines of the wide utilization files and their cells. Each macro renders to one expression. -#}
{# text before the first comma of a line (the time), and the rest from that comma on (cells, each after a comma) -#}
{% macro line_time(line) %}substr({{ line }}, 1, greatest(strpos({{ line }}, ',') - 1, 0)){% endmacro %}
{% macro line_cells(line) %}substr({{ line }}, greatest(strpos({{ line }}, ','), 1)){% endmacro %}
{# UTC timestamp of a text such as 2023-07-01 08:00:00+08:00; NULL where the text is no timestamp -#}
{% macro moment_utc(written) %}CASE WHEN regexp_matches({{ written }}, '^[12][0-9]{3}-[0-9]{2}-[0-9]{2} ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?[+-]([01][0-9]|2[0-3]):[0-5][0-9]$') THEN try_cast(substr({{ written }}, 1, length({{ written }}) - 6) AS TIMESTAMP) - CAST(concat(left(right({{ written }}, 6), 1), left(right({{ written }}, 5), 2)) AS BIGINT) * INTERVAL '1 hour' - CAST(concat(left(right({{ written }}, 6), 1), right({{ written }}, 2)) AS BIGINT) * INTERVAL '1 minute' END{% endmacro %}
{# true if a cell is readable: empty, nan, or a number in the range of a measurement -#}
{% macro is_cell(cell) %}regexp_matches({{ cell }}, '^([nN][aA][nN]|-?[0-9]{1,9}([.][0-9]{0,17})?([eE]-[0-9]{1,2})?)?$'){% endmacro %}

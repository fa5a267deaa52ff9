{# Lines of the wide utilization files and their cells. Each macro renders to one expression. -#}
{# what stands before the first comma of a line, and what from it on: the time, and the cells with a comma before each -#}
{% macro line_time(line) %}substr({{ line }}, 1, greatest(strpos({{ line }}, ',') - 1, 0)){% endmacro %}
{% macro line_cells(line) %}substr({{ line }}, greatest(strpos({{ line }}, ','), 1)){% endmacro %}
{# the moment of 2023-07-01 08:00:00+08:00 in UTC; NULL where the text is none -#}
{% macro moment_utc(written) %}CASE WHEN regexp_matches({{ written }}, '^[12][0-9]{3}-[0-9]{2}-[0-9]{2} ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?[+-]([01][0-9]|2[0-3]):[0-5][0-9]$') THEN try_cast(substr({{ written }}, 1, length({{ written }}) - 6) AS TIMESTAMP) - CAST(concat(left(right({{ written }}, 6), 1), left(right({{ written }}, 5), 2)) AS BIGINT) * INTERVAL '1 hour' - CAST(concat(left(right({{ written }}, 6), 1), right({{ written }}, 2)) AS BIGINT) * INTERVAL '1 minute' END{% endmacro %}
{# what a cell must be to be read: nothing, nan, or a number of the size of a measurement -#}
{% macro is_cell(cell) %}regexp_matches({{ cell }}, '^([nN][aA][nN]|-?[0-9]{1,9}([.][0-9]{0,17})?([eE]-[0-9]{1,2})?)?$'){% endmacro %}

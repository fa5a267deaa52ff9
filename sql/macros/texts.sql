{# Numbers in sentences for people. -#}
{# bytes with one decimal in the unit that fits: 6.8 TB -#}
{% macro bytes_text(bytes) %}CASE WHEN {{ bytes }} >= 1e15 THEN format('{:.2f} PB', {{ bytes }} / 1e15) WHEN {{ bytes }} >= 1e12 THEN format('{:.1f} TB', {{ bytes }} / 1e12) WHEN {{ bytes }} >= 1e9 THEN format('{:.1f} GB', {{ bytes }} / 1e9) WHEN {{ bytes }} >= 1e6 THEN format('{:.1f} MB', {{ bytes }} / 1e6) WHEN {{ bytes }} >= 1e3 THEN format('{:.1f} kB', {{ bytes }} / 1e3) ELSE CAST({{ bytes }} AS BIGINT) || ' B' END{% endmacro %}
{# a fraction of 1 in %: 18.6 % -#}
{% macro percent_text(fraction) %}format('{:.1f} %', 100 * {{ fraction }}){% endmacro %}
{# a period and its standard error, to the first digit of the error, and its alias: 11.438 ± 0.005 s or 1.096 s -#}
{% macro period_text(period, error, alias) %}printf('%.*f ± %.*f s', CASE WHEN {{ error }} >= 1 THEN 0 WHEN {{ error }} >= 0.1 THEN 1 WHEN {{ error }} >= 0.01 THEN 2 WHEN {{ error }} >= 0.001 THEN 3 ELSE 4 END, {{ period }}, CASE WHEN {{ error }} >= 1 THEN 0 WHEN {{ error }} >= 0.1 THEN 1 WHEN {{ error }} >= 0.01 THEN 2 WHEN {{ error }} >= 0.001 THEN 3 ELSE 4 END, {{ error }}) || coalesce(printf(' or %.3f s', {{ alias }}), ''){% endmacro %}

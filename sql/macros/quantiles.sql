{# Quantiles of counted values. A row is a value; `until` is the number of samples up to and with it, `n` that of all samples. -#}
{# the value of rank r of 0 .. n - 1 -#}
{% macro value_at(value, rank) %}min({{ value }}) FILTER (WHERE until > {{ rank }}){% endmacro %}
{# the value at so many thousandths of the ranks; between two ranks on a straight line, as quantile_cont has it -#}
{% macro quantile_of_counts(value, thousandths) %}{{ value_at(value, '(n - 1) * %d // 1000' % thousandths) }} + ({{ value_at(value, 'least((n - 1) * %d // 1000 + 1, n - 1)' % thousandths) }} - {{ value_at(value, '(n - 1) * %d // 1000' % thousandths) }}) * ((max(n) - 1) * {{ thousandths }} % 1000 / 1e3){% endmacro %}

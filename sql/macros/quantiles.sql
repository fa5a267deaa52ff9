{# Quantiles of counted values. One row per value; `until` is the number of samples up to and including it, `n` the number of all samples. -#}
{# value at a rank from 0 to n - 1 -#}
{% macro value_at(value, rank) %}min({{ value }}) FILTER (WHERE until > {{ rank }}){% endmacro %}
{# quantile in thousandths, interpolated linearly between two ranks as quantile_cont does -#}
{% macro quantile_of_counts(value, thousandths) %}{{ value_at(value, '(n - 1) * %d // 1000' % thousandths) }} + ({{ value_at(value, 'least((n - 1) * %d // 1000 + 1, n - 1)' % thousandths) }} - {{ value_at(value, '(n - 1) * %d // 1000' % thousandths) }}) * ((max(n) - 1) * {{ thousandths }} % 1000 / 1e3){% endmacro %}

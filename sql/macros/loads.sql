{# What counts as used or idle, docs/metrics/suspects.md. Each macro renders to one expression. -#}
{# bytes in an hour, in and out together, below which a server or a link is idle; an idle NIC has about 0.4 MB of link chatter -#}
{% macro idle_bytes() %}1000000000{% endmacro %}
{# true if the owner of rails (a server or a job, a window) uses this one: it moved a tenth of the bytes of the owner's busiest rail, and the owner is not idle -#}
{% macro uses_rail(bytes, owner) %}(10 * {{ bytes }} >= max({{ bytes }}) OVER {{ owner }} AND sum({{ bytes }}) OVER {{ owner }} >= {{ idle_bytes() }}){% endmacro %}

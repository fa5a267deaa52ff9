{# Names of devices and ports in the form that all tables use. Each macro renders to one expression. -#}
{# Leaf-1, ST-leaf-1 or spine-9 of a DeviceName; '' where it holds none -#}
{% macro switch_name(device) %}regexp_extract({{ device }}, '((ST-leaf|Leaf|spine)-[0-9]+)', 1){% endmacro %}
{# GPU-31 of a sysname; '' where it holds none -#}
{% macro server_name(sysname) %}regexp_extract(trim({{ sysname }}), '(GPU-[0-9]+)$', 1){% endmacro %}
{# the port's full name where a table abbreviates it: 400GE1/0/8 is FourHundredGigE1/0/8 -#}
{% macro port_name(port) %}replace(replace(trim({{ port }}), '400GE', 'FourHundredGigE'), '200GE', 'TwoHundredGigE'){% endmacro %}
{# the n of Leaf-n, ST-leaf-n, GPU-n; NULL where there is none -#}
{% macro number_of(name) %}CAST(nullif(regexp_extract({{ name }}, '([0-9]{1,9})$', 1), '') AS INTEGER){% endmacro %}
{# the leaves that share their servers: Leaf-1..4; NULL for a spine -#}
{% macro leaf_group(switch) %}CASE WHEN starts_with({{ switch }}, 'spine') THEN NULL ELSE regexp_extract({{ switch }}, '^(.*-)[0-9]+$', 1) || (({{ number_of(switch) }} - 1) // 4 * 4 + 1) || '..' || (({{ number_of(switch) }} - 1) // 4 * 4 + 4) END{% endmacro %}

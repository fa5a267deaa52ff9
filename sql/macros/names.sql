{# Names of devices and ports in the form that all tables use. Each macro renders to one expression. -#}
{# short switch name (Leaf-1, ST-leaf-1, spine-9) in a DeviceName; '' where it has none -#}
{% macro switch_name(device) %}regexp_extract({{ device }}, '((ST-leaf|Leaf|spine)-[0-9]+)', 1){% endmacro %}
{# short switch name where the device name has one, else NULL -#}
{% macro named_switch(device) %}nullif({{ switch_name(device) }}, ''){% endmacro %}
{# server name where the sysname has one, else NULL -#}
{% macro named_server(sysname) %}nullif({{ server_name(sysname) }}, ''){% endmacro %}
{# address to look up where a name is missing: the text in place of the name, else the given address; NULL where there is a name -#}
{% macro address_for(name, text, address) %}CASE WHEN {{ name }} IS NULL THEN coalesce(trim({{ text }}), trim({{ address }})) END{% endmacro %}
{# address of a NIC: the given one, else the text in place of a name -#}
{% macro nic_address(name, text, address) %}coalesce(trim({{ address }}), CASE WHEN {{ name }} IS NULL THEN trim({{ text }}) END){% endmacro %}
{# server name (GPU-31) in a sysname; '' where it has none -#}
{% macro server_name(sysname) %}regexp_extract(trim({{ sysname }}), '(GPU-[0-9]+)$', 1){% endmacro %}
{# full port name of an abbreviated one, of any case: 400GE1/0/8 and FH1/0/8 are FourHundredGigE1/0/8 -#}
{% macro port_name(port) %}regexp_replace(regexp_replace(regexp_replace(trim({{ port }}), '^(400GE|FH|FourHundredGig(abit)?E(thernet)?) *', 'FourHundredGigE', 'i'), '^(200GE|TH|TwoHundredGig(abit)?E(thernet)?) *', 'TwoHundredGigE', 'i'), '^M-?(GE|Gig(abit)?E(thernet)?) *', 'M-GigabitEthernet', 'i'){% endmacro %}
{# adapter of any case: MLX5_3, mlx5-3 and mlx5_3/1 are mlx5_3 -#}
{% macro adapter_name(name) %}regexp_replace(lower(trim({{ name }})), '^(mlx[0-9]+)[-_]([0-9]+)([/:]1)?$', '\1_\2'){% endmacro %}
{# n of Leaf-n, ST-leaf-n or GPU-n; NULL where the name has no number -#}
{% macro number_of(name) %}CAST(nullif(regexp_extract({{ name }}, '([0-9]{1,9})$', 1), '') AS INTEGER){% endmacro %}
{# group of leaves that share their servers, as Leaf-1..4; NULL for a spine -#}
{% macro leaf_group(switch) %}CASE WHEN starts_with({{ switch }}, 'spine') THEN NULL ELSE regexp_extract({{ switch }}, '^(.*-)[0-9]+$', 1) || (({{ number_of(switch) }} - 1) // 4 * 4 + 1) || '..' || (({{ number_of(switch) }} - 1) // 4 * 4 + 4) END{% endmacro %}
{# port number p of 1/0/p and 1/0/p:h; NULL where the name has none -#}
{% macro port_number(port) %}CAST(nullif(regexp_extract({{ port }}, '/([0-9]{1,9})(:[0-9]+)?$', 1), '') AS INTEGER){% endmacro %}
{# port name without its speed, as 1/0/p:h -#}
{% macro short_port(port) %}regexp_extract({{ port }}, '[0-9].*$'){% endmacro %}
{# link as people name it: Leaf-10 1/0/35 -#}
{% macro link_name(switch, port) %}{{ switch }} || ' ' || {{ short_port(port) }}{% endmacro %}
{# class of a leaf or storage-leaf port, from its name and number only -#}
{% macro port_class(switch, port) %}CASE WHEN starts_with({{ port }}, 'M-GigabitEthernet') THEN 'management' WHEN starts_with({{ switch }}, 'ST-') AND {{ port_number(port) }} BETWEEN 55 AND 64 THEN 'storage_uplink' WHEN starts_with({{ switch }}, 'ST-') THEN 'storage_access' WHEN starts_with({{ port }}, 'TwoHundredGigE') THEN 'access' WHEN {{ port_number(port) }} BETWEEN 33 AND 62 THEN 'uplink' ELSE 'spare' END{% endmacro %}
{# line rate of a port in bit/s, from its name only -#}
{% macro line_rate_bps(port) %}CASE WHEN starts_with({{ port }}, 'M-GigabitEthernet') THEN 1000000000 WHEN starts_with({{ port }}, 'TwoHundredGigE') THEN 200000000000 WHEN starts_with({{ port }}, 'FourHundredGigE') THEN 400000000000 END{% endmacro %}
{# spine of an uplink: ports 33..62 of a leaf are ten bundles of three, one per spine; ports 55..64 of a storage leaf go to one spine each -#}
{% macro uplink_spine(switch, port) %}'spine-' || CASE WHEN starts_with({{ switch }}, 'ST-') THEN {{ port_number(port) }} - 54 ELSE ({{ port_number(port) }} - 33) // 3 + 1 END{% endmacro %}
{# spine port of an uplink: three ports per leaf, in order of leaves; NULL for a storage leaf, whose order is unknown -#}
{% macro uplink_spine_port(switch, port) %}CASE WHEN NOT starts_with({{ switch }}, 'ST-') THEN 'FourHundredGigE1/0/' || (3 * ({{ number_of(switch) }} - 1) + ({{ port_number(port) }} - 33) % 3 + 1) END{% endmacro %}
{# NIC family of a server, from one NIC name: ens10 (10, 11, 18, 19) or ens24 (24, 25, 30, 31) -#}
{% macro nic_family(nic) %}CASE WHEN regexp_matches({{ nic }}, '^ens1[0189]') THEN 'ens10' WHEN regexp_matches({{ nic }}, '^ens(24|25|30|31)') THEN 'ens24' END{% endmacro %}
{# key of a flow, 64 bits of a stable hash: both addresses and queue pairs as text take six times the memory. DuckDB's md5_number_lower goes through text, which takes three times as long -#}
{% macro flow_key(f) %}CAST(md5_number(concat_ws(' ', coalesce({{ f }}.source_ip, {{ f }}.source_server || coalesce({{ f }}.source_switch, '')), {{ f }}.source_qp, coalesce({{ f }}.dest_ip, {{ f }}.dest_server || coalesce({{ f }}.dest_switch, '')), {{ f }}.dest_qp)) & 18446744073709551615::UHUGEINT AS UBIGINT){% endmacro %}
{# rail of a leaf, its place in the leaf group, 1 to 4; a server has one NIC on each rail -#}
{% macro rail(switch) %}(({{ number_of(switch) }} - 1) % 4 + 1){% endmacro %}
{# sort key for natural order: each number padded to six digits, so that Leaf-5 comes before Leaf-10 -#}
{% macro natural(text) %}regexp_replace(regexp_replace({{ text }}, '([0-9]+)', '00000\1', 'g'), '0*([0-9]{6,})', '\1', 'g'){% endmacro %}
{# name of a job found in the traffic of an hour, where tasks have theirs: traffic-2024-05-23T16-3 -#}
{% macro traffic_task(hour, job) %}concat('traffic-', strftime({{ hour }}, '%Y-%m-%dT%H'), '-', {{ job }}){% endmacro %}

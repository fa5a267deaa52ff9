"""The fabric of a cluster, drawn: leaf groups below, leaves, spines above; links by their load."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.report.figure import Figure, Section, Spec, Values
from warehouse.report.theme import GREY, RED, SEQUENTIAL, chart, sized
from warehouse.report.words import count, distinct, foremost, number, total

GROUPS, LEAVES, SPINES = 0.0, 1.0, 3.0
"""Heights at which the three tiers are drawn."""


def _says(rows: Sequence[Values]) -> str:
    uplinks = [row for row in rows if row["tier"] == "uplink"]
    said = (
        f"{count(len(distinct(rows, 'leaf_group')), 'leaf group')}, {count(len(distinct(rows, 'leaf')), 'leaf')}"
        f" and {count(len(distinct(rows, 'spine')), 'spine')}. "
    )
    known = [row for row in uplinks if row["fullest_percent"] is not None]
    if known:
        top = foremost(known)
        said += (
            f"The fullest uplink is {top['fullest_port']} of {top['leaf']} to {top['spine']}, "
            f"{number(top['fullest_percent'])} % over the hour. "
        )
    else:
        said += "The load of no uplink is known. "
    suspects = total(rows, "suspect_links")
    return said + (f"{count(suspects, 'suspect link')}, marked with a cross." if suspects else "No link is suspect.")


def _places(names: Sequence[str]) -> dict[str, float]:
    """Evenly spread from 0 to 1."""
    return {name: (at + 0.5) / len(names) for at, name in enumerate(names)}


def _by_number(name: str) -> tuple[str, int, str]:
    """Leaf-2 before Leaf-10, and both before ST-leaf-1."""
    kind = name.rstrip("0123456789")
    return kind, len(name), name


def _chart(rows: Sequence[Values]) -> Spec:
    import altair

    leaves = _places(sorted(distinct(rows, "leaf"), key=_by_number))
    spines = _places(sorted(distinct(rows, "spine"), key=_by_number))
    under: dict[str, list[float]] = {}
    for row in rows:
        under.setdefault(row["leaf_group"] or "no group", []).append(leaves[row["leaf"]])
    groups = {group: sum(found) / len(found) for group, found in under.items()}
    links = [
        {
            **{name: row[name] for name in ("tier", "leaf", "links", "mean_percent", "fullest_percent", "suspects")},
            "to": row["spine"] or row["leaf_group"],
            "x": leaves[row["leaf"]],
            "y": LEAVES,
            "x2": spines[row["spine"]] if row["tier"] == "uplink" else groups[row["leaf_group"] or "no group"],
            "y2": SPINES if row["tier"] == "uplink" else GROUPS,
        }
        for row in rows
    ]
    for link in links:  # where the cross goes: on an uplink near the leaf, else midway
        part = 0.3 if link["tier"] == "uplink" else 0.55
        link["cx"] = link["x"] + part * (link["x2"] - link["x"])
        link["cy"] = link["y"] + part * (link["y2"] - link["y"])
    nodes = [
        {"name": name, "x": x, "y": y, "kind": kind}
        for placed, y, kind in ((groups, GROUPS, "leaf group"), (leaves, LEAVES, "leaf"), (spines, SPINES, "spine"))
        for name, x in placed.items()
    ]
    x = altair.X("x:Q", axis=None, scale=altair.Scale(domain=[0, 1]))
    y = altair.Y("y:Q", axis=None, scale=altair.Scale(domain=[-0.4, 3.3]))
    tooltip = [f"{name}:N" for name in ("leaf", "to", "links", "mean_percent", "fullest_percent", "suspects")]
    lines = chart(links).encode(x=x, y=y, x2="x2:Q", y2="y2:Q", tooltip=tooltip)
    unknown = lines.transform_filter("datum.fullest_percent === null").mark_rule(
        color=GREY, opacity=0.45, strokeDash=[2, 3]
    )
    known = lines.transform_filter("datum.fullest_percent !== null").mark_rule(strokeWidth=2)
    loads = known.encode(
        color=altair.Color(
            "mean_percent:Q", title="mean load of the links, %", scale=altair.Scale(scheme=SEQUENTIAL, type="sqrt")
        )
    )
    crosses = (
        chart([link for link in links if link["suspects"]])
        .mark_point(shape="cross", angle=45, size=90, filled=True, color=RED, opacity=1)
        .encode(x=altair.X("cx:Q", axis=None), y=altair.Y("cy:Q", axis=None), tooltip=tooltip)
    )
    points = chart(nodes).mark_circle(size=60, color="currentColor", opacity=1).encode(x=x, y=y, tooltip=["name:N"])
    names = chart(nodes).encode(x=x, y=y, text="name:N")
    upright = names.transform_filter("datum.kind === 'leaf group'").mark_text(dy=17, fontSize=12, limit=100)
    short = names.transform_calculate(
        short="replace(replace(datum.name, /^(Leaf|spine)-/, ''), /^ST-leaf-/, 'ST')"
    ).encode(text="short:N")
    below = short.transform_filter("datum.kind === 'leaf'").mark_text(dy=13, dx=9, fontSize=11)
    above = short.transform_filter("datum.kind === 'spine'").mark_text(dy=-12, fontSize=12)
    return sized(altair.layer(unknown, loads, points, crosses, upright, below, above), 360)


def section(clusters: Sequence[str]) -> Section:
    """The fabric of each cluster that has ports, and the suspect links of all."""
    drawn = tuple(
        Figure(
            "fabric",
            f"Fabric of {cluster}: servers below, leaves, spines above",
            _says,
            f"No link of {cluster} is known.",
            _chart,
            {"cluster": cluster},
            wide=True,
        )
        for cluster in clusters
    )
    suspects = Figure(
        "suspects",
        "Suspect links",
        lambda rows: f"{count(len(rows), 'link')} where workbook and traffic contradict each other, or dead one way.",
        "No link is suspect.",
    )
    return Section("fabric", "The fabric", (*drawn, suspects) if drawn else (), "No switch is known.")

"""The HTML: one file that asks the network for nothing.

Text from data is escaped by Jinja, and in scripts by `_for_script`; charts are Vega-Lite as JSON, drawn by the
bundle that stands in the file once. A content security policy forbids every request.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from warehouse.report.theme import as_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.report.figure import Answer, Figure, Section

    Answered = Sequence[tuple[Section, Sequence[tuple[Figure, Answer | None]]]]


def page(build: tuple[Any, ...], answered: Answered, *, kept: bool) -> str:
    """The report's text.

    Parameters
    ----------
    build
        Id, time, version and engine of the build.
    answered
        Each section with its figures and their answers; None where the tables are not there.
    kept
        Whether `warehouse cite` knows the citations.
    """
    import jinja2
    from markupsafe import Markup

    shown = [(section, [_shown(figure, answer) for figure, answer in asked]) for section, asked in answered]
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_text("page.html.j2")).render(
        build=dict(zip(("id", "published", "version", "engine"), build, strict=True)),
        sections=shown,
        kept=kept,
        style=Markup(_text("page.css")),  # noqa: S704 - files of this package
        script=Markup(_text("page.js")),  # noqa: S704
        bundle=Markup(_bundle()),  # noqa: S704
        specs=Markup(_for_script([one["spec"] for _, figures in shown for one in figures if one["spec"]])),  # noqa: S704
    ) + "\n"  # fmt: skip


def _shown(figure: Figure, answer: Answer | None) -> dict[str, Any]:
    if answer is None or not answer.rows:
        return {"figure": figure, "answer": None, "spec": None}
    values = answer.values
    says = figure.says(values)
    spec = None
    if figure.chart:
        vega = as_dict(figure.chart(values), says)
        spec = {"id": figure.name, "spec": vega, "renderer": "canvas" if figure.canvas else "svg"}
    parameters = [f"${name} = {value}" for name, value in answer.citation.parameters.items()]
    return {"figure": figure, "answer": answer, "says": says, "spec": spec, "parameters": parameters}


def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed: all the JavaScript that draws."""
    import vl_convert

    return str(vl_convert.javascript_bundle()).replace("</script", "<\\/script")  # type: ignore[call-arg]


def _for_script(value: object) -> str:
    """JSON that cannot end the script that it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")

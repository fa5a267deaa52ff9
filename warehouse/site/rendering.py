"""Template rendering: filters for numbers, sizes and long texts."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from warehouse.base.text import size
from warehouse.site.prose import inline_code

if TYPE_CHECKING:
    from collections.abc import Callable


def renderer(site: object) -> Callable[..., str]:
    """Return a function that renders a template of the site: `render("table.html.j2", root="../", table=...)`."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        # So that a misspelled name in a template is an error and no empty text.
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(lambda name: asset(f"templates/{name}")),
    )
    filters: dict[str, Callable[[Any], object]] = {
        "short": _short,
        "number": lambda count: f"{count:,}",
        "size": lambda count: "" if count is None else size(count),
        "code": inline_code,
        "from_json": json.loads,
    }
    environment.filters |= filters
    environment.globals |= {"site": site}

    def render(template: str, root: str, **values: Any) -> str:
        return environment.get_template(template).render(root=root, **values).rstrip() + "\n"

    return render


def asset(name: str) -> str:
    """Return the text of a script, style or template of the package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def for_script(value: object) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # `</script>` in a text would end the element, and old JavaScript takes these separators for line ends.
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"

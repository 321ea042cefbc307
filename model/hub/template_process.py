"""Renders one chat template in a process of its own (`model/system/bounded_process.py`). It imports nothing
of this project.

A template is a program of the model's maker: it runs in Jinja's sandbox, within bounds of time, memory and
output. The names that it may use are those that Hugging Face's library gives it.
"""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, NoReturn

from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock, Node
from jinja2.sandbox import ImmutableSandboxedEnvironment

LONGEST = 100_000  # characters that come out


class Generation(Extension):
    """`{% generation %}` … `{% endgeneration %}`: marks what the assistant wrote, and changes no text."""

    tags = {"generation"}  # noqa: RUF012 - Jinja reads it so

    def parse(self, parser: Any) -> Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller: Any) -> Any:
        return caller()


def load(given: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What renders a template for its messages."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return lambda asked: {"text": _rendered(environment.from_string(asked.pop("template")), asked)}


def _rendered(template: Any, names: dict[str, Any]) -> str:
    text = ""
    for part in template.generate(names):
        text += part
        if len(text) > LONGEST:
            raise ValueError(f"it writes more than {LONGEST:,} characters")
    return text


def _tojson(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: object) -> NoReturn:
    raise ValueError(str(message))

"""Renders one chat template in a process of its own, which ends itself. It imports nothing of this project.

A template is a program of the model's maker: it runs in Jinja's sandbox, within bounds of time, memory and
output. The names that it may use are those that Hugging Face's library gives it.
"""

import json
import resource
import signal
import sys
from contextlib import suppress
from datetime import datetime
from typing import Any, NoReturn

LOADING, SECONDS = 60, 3  # to import Jinja, and to render
MEMORY = 512 * 2**20  # bytes
LONGEST = 100_000  # characters that come out


def main() -> None:
    """Reads the template and the messages, writes the text or the error."""
    signal.alarm(LOADING)  # it is not caught, so it ends the process
    from jinja2.ext import Extension, loopcontrols
    from jinja2.nodes import CallBlock, Node
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}` … `{% endgeneration %}`: marks what the assistant wrote, and changes no text."""

        tags = {"generation"}  # noqa: RUF012 - Jinja reads it so

        def parse(self, parser: Any) -> Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

        def _same(self, caller: Any) -> Any:
            return caller()

    asked = json.loads(sys.stdin.buffer.read())
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):  # where the system knows no such bound
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    signal.alarm(SECONDS)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    try:
        template = environment.from_string(asked.pop("template"))
        text = ""
        for part in template.generate(asked):
            text += part
            if len(text) > LONGEST:
                raise ValueError(f"it writes more than {LONGEST:,} characters")
        answer = {"text": text}
    except Exception as error:
        answer = {"error": (str(error).strip() or type(error).__name__).splitlines()[0][:200]}
    print(json.dumps(answer), flush=True)


def _tojson(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: object) -> NoReturn:
    raise ValueError(str(message))


if __name__ == "__main__":
    main()

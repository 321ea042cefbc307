"""The chat template of an instruct model: how it wraps a sentence before the model reads it."""

import json
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock

from model.download.hub_folder import TOKENIZER_CONFIG, check_file, read_json
from model.hub import template_process
from model.hub.template_process import LOADING, MEMORY, SECONDS
from model.system.processes import ended_after, start_python

FILE = "chat_template.jinja"
LONGEST = 64 * 1024  # characters of a template
_ONE_AT_A_TIME = Lock()


def chat_template(folder: Path) -> str | None:
    """The template of a model's folder, of several the one named “default”; None where it has none that can
    be read, or a very long one."""
    found: object = None
    with suppress(ValueError, OSError, KeyError, TypeError):
        if (folder / FILE).exists():
            check_file(folder, folder / FILE)
            found = (folder / FILE).read_text(encoding="utf-8")
        elif (folder / TOKENIZER_CONFIG).exists():
            found = read_json(folder / TOKENIZER_CONFIG).get("chat_template")
            if isinstance(found, list):
                found = {one["name"]: one["template"] for one in found}.get("default")
    return found if isinstance(found, str) and 0 < len(found) <= LONGEST else None


@lru_cache(maxsize=128)
def wrapped(template: str, text: str, **special: str) -> str:
    """A sentence of the user as the template wraps it, up to where the assistant begins to write. special:
    tokens of the model that the template may name, such as bos_token.

    Raises ValueError for a template that fails, or that takes too much time, memory or room.
    """
    asked = {
        "template": template,
        "messages": [{"role": "user", "content": text}],
        "add_generation_prompt": True,
        **special,
    }
    with (
        _ONE_AT_A_TIME,
        start_python([template_process.__file__]) as process,
        ended_after(process, LOADING + SECONDS),
    ):
        said, _ = process.communicate(json.dumps(asked).encode())
    if process.returncode:
        raise ValueError(
            f"The chat template takes more than {SECONDS} seconds or {MEMORY / 2**20:.0f} MiB of memory."
        )
    answer: dict[str, str] = json.loads(said)
    if "error" in answer:
        raise ValueError(f"The chat template cannot be rendered ({answer['error']}).")
    return answer["text"]

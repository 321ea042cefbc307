"""The server's memory beside its bounds: fifty pages that stay open, with more models and more traces than it
may keep. `reported` is what it says of itself at `/metrics`.
"""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from bench import gpt2_size
from tests.server import Server, numbers, serving
from tests.visitor import Visitor

OPEN, FEW = 50, 12
PAGES = ("", "all_heads", "prediction", "tokens")
MODELS = ("random-1", "random-2", "random-3")
LAYERS, WIDTH = 2, 528  # 133 MB
MODEL_MB, TRACE_MB = 150, 300
TOKENS = (990, 400)  # in turn: a trace over the bound, and one within it
SECONDS_TO_SETTLE = 12.0  # memory is given back now and then


@dataclass(frozen=True)
class Wanted:
    """What one page opens."""

    page: str
    model: str
    text: str


def measure(scratch: Path, short: bool) -> dict[str, object]:
    small, large = scratch / "small", scratch / "large"
    for name in MODELS:
        gpt2_size.save(small, name, LAYERS, WIDTH)
    gpt2_size.save(large)
    numbered = range(FEW if short else OPEN)
    pages = [PAGES[n % len(PAGES)] for n in numbered]
    texts = [gpt2_size.text_of(tokens) for tokens in TOKENS]
    many_models = [Wanted(pages[n], MODELS[n % 3], f"Cat {n} sat") for n in numbered]
    many_traces = [Wanted(pages[n], gpt2_size.NAME, f"{n}{texts[n % 2]}") for n in numbered]
    rows = [
        _row(scratch, small, {"ATTENTION_MODEL_MB": str(MODEL_MB)}, many_models),
        _row(scratch, large, {"ATTENTION_TRACE_MB": str(TRACE_MB)}, many_traces),
    ]
    return {"rows": rows}


def _row(
    scratch: Path, models: Path, bound: dict[str, str], pages: list[Wanted]
) -> dict[str, object]:
    with serving(scratch / "server.log", models, bound) as server:
        row = {"bound": bound, "pages": len(pages)} | asyncio.run(_opened(server, pages))
    print(row, flush=True)
    return row


async def _opened(server: Server, pages: list[Wanted]) -> dict[str, object]:
    """Megabytes with nothing but the shipped model, and with all these pages open."""
    troubles = list[str]()
    for page in PAGES:  # what the pages themselves import
        async with Visitor(server.port, page, ""):
            pass
    before = server.memory
    async with AsyncExitStack() as stay_open:
        for one in pages:
            link = urlencode({"text": one.text, "model": one.model})
            visitor = await stay_open.enter_async_context(Visitor(server.port, one.page, link))
            troubles += visitor.troubles
        await asyncio.sleep(SECONDS_TO_SETTLE)
        after, told = server.memory, numbers(server)
    return {
        "before": round(before),
        "after": round(after),
        "peak": round(server.peak),
        "reported_models": round(told["attention_model_bytes"] / 2**20),
        "reported_traces": round(told["attention_cache_bytes"] / 2**20),
        "reported_process": round(told["process_resident_memory_bytes"] / 2**20),
        "troubles": troubles[:3],
    }

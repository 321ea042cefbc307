"""The server under many visitors: runs a second and their latency with 1, 10 and 50 sessions that switch
heads and masks without a pause; and its memory over 500 different sentences.

The visitors have no browser but speak its protocol, so the server does all that it does for one.
"""

import asyncio
import itertools
import time
from pathlib import Path
from urllib.parse import urlencode

from bench.quantiles import median, p90, p95
from tests.server import Server, serving
from tests.visitor import Visitor

SESSIONS = (1, 10, 50)
SECONDS = 15
SENTENCES = 500
MASKS = (False, True)  # whether the future is hidden
NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Frank", "Grace", "Henry", "Ida", "Jack")
THINGS = ("red ball", "old book", "green cup", "small box", "blue hat")
ENDS = ("and ran home", "and sat down", "in the garden", "by the door", "to her friend")


def measure(scratch: Path, short: bool) -> dict[str, object]:
    seconds, sentences = (4, 40) if short else (SECONDS, SENTENCES)
    with serving(scratch / "server.log") as server:
        rows = []
        for count in SESSIONS:
            rows.append(asyncio.run(together(server, count, seconds)))
            print(rows[-1], flush=True)
    with serving(scratch / "server.log") as server:
        memory = asyncio.run(_reading(server, sentences))
        print(memory, flush=True)
    return {"rows": rows, "memory": memory}


def sentence(number: int) -> str:
    """The number-th of many different sentences in the shipped model's words."""
    giver, taker = NAMES[number % 10], NAMES[(number // 10 + 1 + number % 10) % 10]
    thing, end = THINGS[number // 100 % 5], ENDS[number // 500 % 5]
    return f"{giver} gave {taker} the {thing} {end}"


async def together(server: Server, count: int, seconds: float) -> dict[str, object]:
    """So many sessions at once, each with its own sentence, each asking again when it is answered."""
    visitors = [Visitor(server.port, "", urlencode({"text": sentence(n)})) for n in range(count)]
    for visitor in visitors:
        await visitor.__aenter__()
    start = time.perf_counter()
    found = await asyncio.gather(
        *(_switching(visitor, n, start + seconds) for n, visitor in enumerate(visitors)),
        return_exceptions=True,
    )
    passed = time.perf_counter() - start
    for visitor in visitors:
        await visitor.__aexit__(None, None, None)
    fallen = [str(one) for one in found if isinstance(one, BaseException)]
    times = [one for one in found if not isinstance(one, BaseException)]
    heads, masks = (list(itertools.chain(*(one[kind] for one in times))) for kind in (0, 1))
    troubles = [line for visitor in visitors for line in visitor.troubles]
    return {
        "sessions": count,
        "runs_a_second": len(heads + masks) / passed,
        "median_ms": median(heads + masks),
        "p90_ms": p90(heads + masks),
        "p95_ms": p95(heads + masks),
        "head_median_ms": median(heads),
        "mask_median_ms": median(masks),
        "failed": len(fallen) + len(troubles),
        "said": (fallen + troubles)[:3],
    }


async def _switching(visitor: Visitor, n: int, until: float) -> tuple[list[float], list[float]]:
    """Heads and masks in turn; the milliseconds of each. Raises RuntimeError where the link does not
    say what was chosen."""
    heads, masks = [], []
    for turn in itertools.count(n):
        if time.perf_counter() > until:
            return heads, masks
        head = turn % 4
        selection = {"head": head, "stage": "weights", "query": 2, "key": 1}
        heads.append(await visitor.look_at(**selection))
        mask = MASKS[turn % 2]
        masks.append(await visitor.choose("hero-mask", mask))
        if ("mask=none" in visitor.query) != (mask == MASKS[0]):
            raise RuntimeError(f"{mask} was chosen, the link says {visitor.query}.")
    raise AssertionError("counting never ends")


async def _reading(server: Server, sentences: int) -> dict[str, object]:
    """One visitor reads many different sentences; megabytes of the server along the way."""
    async with Visitor(server.port, "", urlencode({"text": "The cat sat"})) as visitor:
        megabytes = [server.memory]
        for n in range(sentences):
            await visitor.choose("choose-text", sentence(n))
            if (n + 1) % (sentences // 5) == 0:
                megabytes.append(server.memory)
        return {"sentences": sentences, "megabytes": megabytes, "failed": len(visitor.troubles)}

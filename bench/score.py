"""How long it takes to split one score into its parts, in the last layer of a model of GPT-2's size."""

import time
from pathlib import Path

from bench import gpt2_size
from bench.quantiles import median, p90
from model import load_model
from model.analysis import score_parts

LENGTHS = (64, 1024)
TIMES = 21


def measure(scratch: Path, short: bool) -> dict[str, object]:
    model = load_model(str(gpt2_size.save(scratch)))
    rows: list[dict[str, object]] = []
    for tokens in LENGTHS:
        trace = model.trace(gpt2_size.text_of(tokens))
        name, last = trace.attention[-1].name, len(trace.tokens) - 1
        found, taken = score_parts(model, trace, name, 0, last, 0), []
        for number in range(3 if short else TIMES):
            start = time.perf_counter()
            score_parts(model, trace, name, number % gpt2_size.HEADS, last, 0)
            taken.append(1000 * (time.perf_counter() - start))
        cell = f"{last + 1:,} tokens, {len(found.query_parts)} × {len(found.key_parts)} parts"
        rows.append({"cell": cell, "median_ms": median(taken), "p90_ms": p90(taken)})
        print(rows[-1], flush=True)
    return {"rows": rows}

"""Many prompts: all heads of 200 prompts in one table, beside a plain loop over them; and the memory that few
and many prompts take.

`python -m bench.many PART MODEL PROMPTS` is one measurement in a process of its own, because the peak of a
process never falls; it prints one line of JSON.
"""

import json
import os
import subprocess
import sys
import time
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.profiled_pass import peak_mb

if TYPE_CHECKING:
    from model import Model
    from model.many import Prompt

PROMPTS = 200
MODELS = {"House GPT": "house-gpt", "SmolLM2": "smollm2-135m-instruct"}
MEMORY = (100, 10_000)  # prompts
SECONDS = 1200  # until a measurement is given up
PLACES = ("house", "garden", "river", "church", "town")
THINGS = ("book", "letter", "ball", "ring", "horse")
NAMES = ("Mary", "John", "Tom", "Anna", "Alice", "Peter", "Henry", "James")
Found = dict[str, Any]


def measure(scratch: Path, short: bool) -> dict[str, object]:
    rows: list[Found] = []
    for title, name in MODELS.items():
        if (found := _started("speed", name, 10 if short else PROMPTS)) is not None:
            rows.append({"model": title, **found})
            print(rows[-1], flush=True)
    memory = []
    for count in MEMORY[: 1 if short else None]:
        memory.append(_started("memory", MODELS["House GPT"], count))
        print(memory[-1], flush=True)
    return {"rows": rows, "memory": memory}


def _started(part: str, model: str, prompts: int) -> Found | None:
    """None where the model's files are not on this machine."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.many", part, model, str(prompts)],
        check=True,
        stdout=subprocess.PIPE,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        text=True,
        timeout=SECONDS,
    )
    found: Found | None = json.loads(done.stdout.splitlines()[-1])
    return found


def prompts_of(count: int) -> "list[Prompt]":
    """Two people, of whom one gives something to the other; names of some lengths."""
    from model.many import Prompt

    filled = product(PLACES, THINGS, NAMES, NAMES)
    made = (
        Prompt(
            f"When {one} and {two} went to the {place}, {two} gave a {thing} to",
            place,
            {"other": f"[{one}] and"},
            (one, two),
        )
        for place, thing, one, two in filled
        if one != two
    )
    return list(islice(made, count))


def speed(model: "Model", count: int) -> Found:
    """Seconds of the table and of the loop, and the largest difference of their numbers."""
    from model.many import logit_difference
    from model.many import measure as measured

    prompts = prompts_of(count)
    for some in (prompts[:4], prompts):  # the first time is not counted
        start = time.perf_counter()
        frame = measured(
            model,
            some,
            weights=[("last", "other")],
            statistics=["entropy"],
            metric=logit_difference(),
        )
        taken = time.perf_counter() - start
    start = time.perf_counter()
    expected = np.concatenate([_by_loop(model, prompt) for prompt in prompts])
    looped = time.perf_counter() - start
    found = frame[["weight", "entropy", "logit_difference"]].to_numpy(np.float64)
    return {
        "prompts": count,
        "heads": len(frame) // count,
        "seconds": taken,
        "loop_seconds": looped,
        "apart": float(np.abs(found - expected).max()),
    }


def _by_loop(model: "Model", prompt: "Prompt") -> "np.ndarray[Any, Any]":
    """(head, 3): the weight from the last token to the other name, the mean entropy of the rows, and the
    difference of two logits."""
    trace = model.trace(prompt.text)
    texts = [token.text.strip() for token in trace.tokens]
    wanted, other = (model.tokens(f"{prompt.text} {name}")[-1].id for name in prompt.answers)
    last = trace.require_prediction().after(-1)
    rows = []
    for attention in trace.attention:
        for head in range(attention.heads):
            weights = attention.weights(head).astype(np.float64)
            logarithms = np.log(np.where(weights > 0, weights, 1))
            rows.append(
                (
                    weights[-1, texts.index(str(prompt.answers[0]))],
                    -(weights * logarithms).sum(-1).mean(),
                    float(last[wanted]) - float(last[other]),
                )
            )
    return np.array(rows)


def memory(model: "Model", count: int) -> Found:
    """The peak of a process that measures so many short prompts, and the size of the table."""
    from model.many import measure as measured

    texts = [f"It was the {number % 1000}th day" for number in range(count)]
    start = time.perf_counter()
    frame = measured(model, texts, weights=[("last", "first")])
    return {
        "prompts": count,
        "seconds": time.perf_counter() - start,
        "process_mb": peak_mb(),
        "table_mb": frame.memory_usage().sum() / 1e6,
    }


def main() -> None:
    part, name, count = sys.argv[1:]
    from model import load_model

    try:
        model = load_model(name)
    except ValueError:  # its files are not here
        print("null")
        return
    print(json.dumps({"speed": speed, "memory": memory}[part](model, int(count))))


if __name__ == "__main__":
    main()

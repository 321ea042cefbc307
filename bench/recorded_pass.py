"""One measurement of one pass: its time and peak memory over a plain pass of the same library.

Run in a process of its own, by the interpreter of the environment that has the library:
`python recorded_pass.py LIBRARY WAY TOKENS REPEATS FOLDER [DEVICE]` prints one line of JSON.
Memory is the peak of the process (on CUDA: of what PyTorch holds there) in a first pass, and how much of
it lies above what the loaded and warmed-up model holds. Times are of passes in turn, plain and recorded,
so that a busy moment of the machine meets both.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench import gpt2_size

Pass = Callable[[], object]
WARM_TOKENS = 8


def ours(way: str, tokens: int, folder: Path, device: str) -> tuple[Pass, Pass, Pass]:
    from model import load_model

    model = load_model(str(folder), device=device)

    def plain(count: int) -> object:
        ids = torch.tensor(
            [[token.id for token in model.tokens(gpt2_size.text_of(count))]], device=device
        )
        with torch.inference_mode():
            return model.module(ids)

    def traced(count: int) -> object:
        record = "full" if way == "full" else "attention"
        text = gpt2_size.text_of(count)
        trace = model.trace(text, record=record, explicit=way == "explicit")
        return trace, trace.logits  # those of a long text are made when they are asked for

    recorded = plain if way == "plain" else traced
    return lambda: plain(tokens), lambda: recorded(tokens), lambda: recorded(WARM_TOKENS)


def hugging_face(way: str, tokens: int, folder: Path, device: str) -> tuple[Pass, Pass, Pass]:
    from transformers import GPT2Config, GPT2LMHeadModel

    def loaded(attention: str) -> GPT2LMHeadModel:
        torch.manual_seed(gpt2_size.SEED)
        return (
            GPT2LMHeadModel._from_config(GPT2Config(), attn_implementation=attention)
            .eval()
            .to(device)
        )

    attentions = way != "plain"
    model = loaded("sdpa")

    def run(count: int, attentions: bool) -> object:
        model.set_attn_implementation("eager" if attentions else "sdpa")
        ids = torch.arange(count, device=device)[None]
        with torch.inference_mode():
            return model(ids, use_cache=False, output_attentions=attentions)

    return (
        lambda: run(tokens, False),
        lambda: run(tokens, attentions),
        lambda: run(WARM_TOKENS, attentions),
    )


def transformer_lens(way: str, tokens: int, folder: Path, device: str) -> tuple[Pass, Pass, Pass]:
    from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(gpt2_size.SEED)
    inner = (
        GPT2LMHeadModel._from_config(GPT2Config(), attn_implementation="eager").eval().to(device)
    )
    model = build_bridge_from_module(inner, "GPT2LMHeadModel", hf_config=inner.config)

    def run(count: int, cached: bool) -> object:
        ids = torch.arange(count, device=device)[None]
        with torch.inference_mode():
            return model.run_with_cache(ids) if cached else model(ids)

    return (
        lambda: run(tokens, False),
        lambda: run(tokens, way != "plain"),
        lambda: run(WARM_TOKENS, way != "plain"),
    )


LIBRARIES = {
    "ours": ours,
    "Hugging Face": hugging_face,
    "TransformerLens": transformer_lens,
}


def status(field: str) -> float:
    """A number of /proc/self/status, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def peak_of(run: Pass, device: str) -> tuple[float, float]:
    """Megabytes at the peak of a pass, what it returns included; and how many of them were not there
    before it."""
    gc.collect()
    if device == "cpu":
        Path("/proc/self/clear_refs").write_text("5")
        before = status("VmRSS")
        result = run()
        peak = status("VmHWM")
    else:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() / 2**20
        result = run()
        peak = torch.cuda.max_memory_allocated() / 2**20
    del result
    return peak, peak - before


def seconds_of(run: Pass, device: str) -> float:
    start = time.perf_counter()
    result = run()
    if device != "cpu":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    del result  # freeing is no part of the pass
    return seconds


def measured(
    library: str, way: str, tokens: int, repeats: int, folder: Path, device: str = "cpu"
) -> dict[str, object]:
    plain, recorded, warm = LIBRARIES[library](way, tokens, folder, device)
    warm()
    peak, above = peak_of(recorded, device)
    if repeats:
        seconds_of(plain, device)
    pairs = [(seconds_of(plain, device), seconds_of(recorded, device)) for _ in range(repeats)]
    return {
        "process_mb": peak,
        "above_model_mb": above,
        "plain_s": [p for p, _ in pairs],
        "recorded_s": [r for _, r in pairs],
    }


if __name__ == "__main__":
    name, chosen, count, times, place, *where = sys.argv[1:]
    print(json.dumps(measured(name, chosen, int(count), int(times), Path(place), *where)))

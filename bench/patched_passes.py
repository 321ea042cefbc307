"""One map of patches: the output of each head of one text put into the run of another, one at a time.

Run in a process of its own, by the interpreter of the environment that has the library:
`python patched_passes.py LIBRARY TOKENS TIMES FOLDER` prints one line of JSON: the seconds of each map, those
of the processor, which say more on a busy machine, and of ours how often it told its progress and how long
the estimate from one gradient takes.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench import gpt2_size

ANSWER = (262, 290)  # two ids: what they say does not matter


def ours(tokens: int, times: int, folder: Path) -> dict[str, object]:
    from model import load_model
    from model.analysis.attribution.patching import PatchedRuns, estimated_map

    model = load_model(str(folder))
    text = gpt2_size.text_of(tokens)
    a, b = model.trace(text), model.trace(text.replace(" mat", " dog"))
    shown: list[object] = []

    def run() -> None:
        shown[:] = PatchedRuns(model, a, b, "head").shares(ANSWER)

    found = timed(run, times)
    start = time.perf_counter()
    estimated_map(PatchedRuns(model, a, b, "head"), ANSWER)
    return found | {"shown": len(shown), "estimate_s": time.perf_counter() - start}


def transformer_lens(tokens: int, times: int, folder: Path) -> dict[str, object]:
    from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module
    from transformer_lens.patching import get_act_patch_attn_head_out_all_pos
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(gpt2_size.SEED)
    inner = GPT2LMHeadModel._from_config(GPT2Config(), attn_implementation="eager").eval()
    model = build_bridge_from_module(inner, "GPT2LMHeadModel", hf_config=inner.config)
    a = torch.arange(tokens)[None]
    b = a.clone()
    b[0, 5] = 1_000
    first, second = ANSWER
    with torch.inference_mode():
        _, cache = model.run_with_cache(b)
        return timed(
            lambda: get_act_patch_attn_head_out_all_pos(
                model, a, cache, lambda logits: logits[0, -1, second] - logits[0, -1, first]
            ),
            times,
        )


def timed(run: Callable[[], object], times: int) -> dict[str, object]:
    """Seconds of the clock and of the processor, of each time."""
    seconds, processor = [], []
    for _ in range(times):
        start, used = time.perf_counter(), time.process_time()
        run()
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    return {"seconds": seconds, "processor_s": processor}


LIBRARIES = {"ours": ours, "TransformerLens": transformer_lens}


if __name__ == "__main__":
    library, count, often, place = sys.argv[1:]
    print(json.dumps(LIBRARIES[library](int(count), int(often), Path(place))))

"""One measurement of profiling: plain passes and profiled windows in turn, in one thread.

Run in a process of its own, by the interpreter of the environment that has the library:
`python profiled_pass.py LIBRARY WINDOWS FOLDER` prints one line of JSON. Each library finds the weights of
all heads in its own way. Of these the same code makes the same sums; ours also has what values carry and the
effects on logits.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench import gpt2_size

WINDOW = 256  # tokens
Pass = Callable[[], object]
Window = Callable[[int], object]  # profiles the window of this number


def ours(folder: Path, *, logits: bool = True) -> tuple[Pass, Window]:
    from model import load_model
    from model.profile.sums import Sums
    from model.profile.window import Profiled, window_sums

    profiled = Profiled.of(load_model(str(folder)))
    model, text = profiled.model, gpt2_size.text_of(WINDOW)
    ids, total = model.ids(model.tokens(text)), Sums.none(profiled.heads, WINDOW)
    if not logits:
        model.module.logits = lambda states: states

    def window(number: int) -> None:
        nonlocal total
        total += window_sums(profiled, text, number, WINDOW)

    return lambda: model.module(ids), window


def ours_without_logits(folder: Path) -> tuple[Pass, Window]:
    """A plain pass leaves the logits out too, as a window's does."""
    return ours(folder, logits=False)


def hugging_face(folder: Path) -> tuple[Pass, Window]:
    model, summed = _gpt2("sdpa"), _summed()
    ids = torch.arange(WINDOW)[None]

    def run(attentions: bool) -> Iterable[Tensor]:
        model.set_attn_implementation("eager" if attentions else "sdpa")
        return model(ids, use_cache=False, output_attentions=attentions).attentions

    return lambda: run(False), lambda number: summed(run(True))


def transformer_lens(folder: Path) -> tuple[Pass, Window]:
    return _transformer_lens(None)


def transformer_lens_weights(folder: Path) -> tuple[Pass, Window]:
    return _transformer_lens(lambda name: name.endswith("hook_pattern"))


def _transformer_lens(kept: Callable[[str], bool] | None) -> tuple[Pass, Window]:
    from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

    inner, summed = _gpt2("eager"), _summed()
    model = build_bridge_from_module(inner, "GPT2LMHeadModel", hf_config=inner.config)
    ids = torch.arange(WINDOW)[None]

    def weights() -> Iterator[Tensor]:
        _, cache = model.run_with_cache(ids, names_filter=kept)
        for layer in range(gpt2_size.LAYERS):
            yield cache[f"blocks.{layer}.attn.hook_pattern"]

    return lambda: model(ids), lambda number: summed(weights())


def _gpt2(attention: str):
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(gpt2_size.SEED)
    return GPT2LMHeadModel._from_config(GPT2Config(), attn_implementation=attention).eval()


def _summed() -> Callable[[Iterable[Tensor]], object]:
    """Adds the weights (1, head, query, key) of all layers to the sums that a profile has of weights."""
    from model.profile.measures import Pairs, measured
    from model.profile.sums import fields
    from model.trace.records import Token

    tokens = tuple(Token(id_, f" w{id_}") for id_ in range(WINDOW))
    kinds, allowed = fields(WINDOW), torch.ones(1, WINDOW, WINDOW, dtype=torch.bool).tril()
    totals: dict[tuple[int, str], object] = {}

    def summed(layers: Iterable[Tensor]) -> None:
        pairs = Pairs.of(tokens, tokens, cross=False)
        for layer, weights in enumerate(layers):
            for name, numbers in measured(weights[0], allowed, pairs, None, kinds).items():
                totals[layer, name] = totals.get((layer, name), 0) + numbers

    return summed


LIBRARIES = {
    "ours": ours,
    "ours, both without logits": ours_without_logits,
    "Hugging Face": hugging_face,
    "TransformerLens": transformer_lens,
    "TransformerLens, weights only": transformer_lens_weights,
}


def peak_mb() -> int:
    """The most memory of this process so far. getrusage would count what its parent had when it began."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def measured(library: str, windows: int, folder: Path) -> dict[str, object]:
    """The seconds of each plain pass and of each window, and of the start; the peak of the process."""
    began = time.perf_counter()
    torch.set_num_threads(1)
    plain_s, profiled_s = [], []
    with torch.inference_mode():
        plain, profile = LIBRARIES[library](folder)
        started = time.perf_counter() - began
        for number in range(windows + 1):  # the first warms up
            one = time.perf_counter()
            plain()
            two = time.perf_counter()
            profile(number)
            plain_s.append(two - one)
            profiled_s.append(time.perf_counter() - two)
    return {
        "plain_s": plain_s[1:],
        "profiled_s": profiled_s[1:],
        "start_s": started,
        "process_mb": peak_mb(),
    }


if __name__ == "__main__":
    name, count, place = sys.argv[1:]
    print(json.dumps(measured(name, int(count), Path(place))))

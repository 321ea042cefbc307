"""Attention in the files of other programs, as traces, and traces as such files.

```python
from model.exchange import read, write

write(trace, "cache.npz", "transformer_lens")
again = read("cache.npz")  # of TransformerLens, nnsight, Hugging Face's library, vLLM, HeadVis
```
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol, runtime_checkable

from model.exchange.files import ENDINGS, arrays_in, content, save_arrays
from model.exchange.formats import FORMATS, FormatName, GivenRun
from model.exchange.headvis import read_headvis, write_headvis
from model.exchange.layers import records_of
from model.nn.config import ProvenPart
from model.nn.places import Place
from model.system.border import at_border
from model.system.files import there
from model.trace import array_file
from model.trace.description import FORMAT, KEY
from model.trace.given import GivenTokens
from model.trace.precision import HALVES
from model.trace.records import FeedForwardRecord
from model.trace.trace import Logits, Trace
from model.trace.trace_file import read_trace_of
from model.trace.unproven import WORDS

__all__ = ["ENDINGS", "FORMATS", "read", "write"]


@runtime_checkable
class HasKeys(Protocol):
    """A mapping, or what nnsight's `tracer.cache()` gives, which is none."""

    def keys(self) -> Iterable[str]: ...

    def __getitem__(self, name: str, /) -> Any: ...


GivenNumbers = str | Path | BinaryIO | HasKeys | tuple[Any, ...] | list[Any]


@partial(at_border, besides=("file_or_mapping",))
def read(
    file_or_mapping: GivenNumbers,
    format: FormatName | None = None,
    tokens: GivenTokens | None = None,
    *,
    target_tokens: GivenTokens | None = None,
    batch: int = 0,
    scale: float | None = None,
    heads: int | None = None,
) -> Trace:
    """What another program kept of a pass, as a trace. Nothing in a file is executed.

    ```python
    # theirs: logits, cache = TransformerBridge.boot_transformers(name).run_with_cache(text)
    layer = trace.find("decoder.0.self")
    cache = {
        "blocks.0.attn.hook_q": layer.query[None].swapaxes(1, 2),  # (batch, token, head, d_k)
        "blocks.0.attn.hook_k": layer.key[None].swapaxes(1, 2),
    }
    theirs = read(cache, tokens=[token.text for token in trace.tokens])
    theirs.find("decoder.0.self").weights(head=1)  # (query, key)
    ```

    Read are caches of TransformerLens (`blocks.N.attn.hook_q` …), what nnsight saved (by module paths), the
    `attentions` of Hugging Face's library (a tuple, or the whole output), queries and keys of a serving
    engine as (token, head, d), folders of HeadVis, and trace files of this app. What was not kept is refused
    by name when it is read (`NotRecordedError`); recorded weights are compared with those of the queries and
    keys, and `doubt` of a sub-layer says what does not fit.

    Args:
        file_or_mapping: a file (.npz, .safetensors, .json), a folder, an open file with a name, tensors by
            name, such as those of `torch.load(file, weights_only=True)`, or a tuple of weights, (batch, head,
            query, key) each.
        format: of the layout; None: as its names tell.
        tokens: words or ids of the text, to name rows and columns; None: the numbers of the positions.
        target_tokens: of the text that the decoder reads, where an encoder reads another.
        batch: which text of a batch.
        scale: the factor on the scores; None: as recorded scores tell, or 1/√d_k.
        heads: how many read one map, where neither weights nor queries of single heads were kept.

    Raises ValueError, with a sentence, for a file that holds no attention, tensors that do not fit together,
    and more or fewer tokens than were read.
    """
    if isinstance(file_or_mapping, str | Path):
        path = there(file_or_mapping)
        if format == "headvis" or path.is_dir() or path.suffix == ".json":
            run, words, model = read_headvis(path)
            return _trace(
                run, model, "HeadVis, largest weights alone", tokens or words, target_tokens
            )
    if isinstance(file_or_mapping, tuple | list):
        file_or_mapping = {"attentions": tuple(file_or_mapping)}
    arrays = getattr(file_or_mapping, "cache_dict", file_or_mapping)  # of TransformerLens
    if isinstance(arrays, HasKeys):  # of nnsight
        arrays = {name: arrays[name] for name in arrays.keys()}  # noqa: SIM118
    if not isinstance(arrays, Mapping):
        with content(arrays) as (name, file, size):
            if format == "trace" or (format is None and _is_trace(name, file, size)):
                return read_trace_of(file, size)
            arrays = arrays_in(name, file, size)
    arrays = {str(name): array for name, array in arrays.items()}
    fitting: Iterator[FormatName] = (name for name, one in FORMATS.items() if one.fits(arrays))
    chosen = format or next(fitting, None)
    if chosen is None or chosen not in FORMATS:
        listed = ", ".join(sorted(arrays)[:3])
        raise ValueError(
            f"There is no attention under these names: {listed}. Known are "
            f"{', '.join(one.title for one in FORMATS.values())}."
        )
    kind = FORMATS[chosen]
    run = kind.reads(arrays, batch, scale, heads)
    if not run.layers:
        raise ValueError(f"There is no attention in {kind.title}.")
    return _trace(run, chosen, kind.title, tokens, target_tokens)


@at_border
def write(trace: Trace, file: str | Path, format: FormatName) -> None:
    """Writes what was recorded as another program names it. A file of that name is replaced.

    ```python
    write(trace, "cache.npz", "transformer_lens")  # blocks.0.attn.hook_q … (batch, pos, head, d)
    write(trace, "heads", "headvis")  # a folder
    ```

    Args:
        trace: of one stack; "huggingface" takes both.
        file: its ending says what is written, .npz or .safetensors; "headvis": a folder; "trace": the
            file that `load_trace` reads.
        format: the layout.

    Raises ValueError for another ending or format, and for a trace that the layout cannot hold.
    """
    path = Path(file)
    if format == "headvis":
        write_headvis(trace, path)
    elif format == "trace":
        trace.save(path)
    else:
        save_arrays(path, FORMATS[format].writes(trace))


def _is_trace(name: str, file: BinaryIO, size: int) -> bool:
    """Whether a file is one that this app wrote."""
    if not name.endswith(".safetensors"):
        return False
    try:
        return FORMAT in array_file.read_header(file, size, KEY).text
    except ValueError:
        return False


def _trace(
    run: GivenRun,
    model: str,
    source: str,
    tokens: GivenTokens | None,
    target_tokens: GivenTokens | None,
) -> Trace:
    records = records_of(run.layers)
    (stack, *_) = dict.fromkeys(one.stack for one in records)
    reason = f"It was read from {source}, which does not keep it."
    kept: dict[ProvenPart, object] = {
        "stream": run.states,
        "embedding": run.summands,
        "feed_forward": run.hidden or run.written,
        "logits": run.logits is not None,
    }
    precision = next(
        (f", in {name}" for name, share in HALVES.items() if share == run.precision), ""
    )
    device = f"{source}{precision}"
    alone = Trace.of_attention(records, model, device, tokens, target_tokens, reason)
    return replace(
        alone,
        residual={stack: run.states},
        summands={stack: run.summands},
        feed_forward=tuple(
            FeedForwardRecord(Place(stack, layer, "feed_forward").name, *pair)
            for layer, pair in sorted((run.hidden or {}).items())
        ),
        prediction=None if run.logits is None else Logits.of(run.logits),
        written=dict(run.written or {}),
        unproven={part: reason for part in WORDS if not kept.get(part)},
    )

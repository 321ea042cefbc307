"""What stands around attention, as tensors and with torch.nn: heads put together, norms, positions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from model.nn.positions import PositionCode
from model.snippets.snippet import Snippet, SnippetLine, Style, shape
from model.snippets.templates import filled_in, templates
from model.trace.records import Attention, NormRecord

Snippets = Mapping[Style, Snippet]


def concatenation(attention: Attention, d_model: int, *, bias: bool) -> Snippets:
    """The outputs of all heads side by side, times W_O. Given: output (head, token, d_v), w."""
    vector = 'w["output.bias"]'
    more = {
        "d_model": d_model,
        "made": shape(attention.output.shape[1], d_model),
        "added": f" + {vector}" if bias else "",
        "bias": f", {vector}" if bias else "",
    }
    return _styles("concatenation", _of_heads(attention) | more, "written")


def joined(attention: Attention) -> Snippets:
    """The outputs of all heads side by side. Given: output (head, token, d_v)."""
    return _styles("joined", _of_heads(attention), "joined")


def _of_heads(attention: Attention) -> dict[str, object]:
    heads, tokens, width = attention.output.shape
    sizes = {"heads": heads, "tokens": tokens, "width": width, "all_width": heads * width}
    return {**sizes, "wide": shape(tokens, heads * width)}


def norm(record: NormRecord, *, shifts: bool) -> Snippets:
    """A layer norm or an RMS norm. Given: x (token, d_model), gamma and, where it shifts, beta."""
    tokens, width = record.input.shape
    slots = {
        "tokens": tokens,
        "width": width,
        "made": shape(tokens, width),
        "epsilon": f"{record.epsilon:.6g}",
        "shift": " + beta" if shifts else "",
        "beta": "beta" if shifts else "None",
    }
    return _styles("norm", slots, "y", {record.kind})


def positions(kind: PositionCode, tokens: int, width: int, *, base: float = 10_000.0) -> Snippets:
    """What is added for each place, or the angles by which queries and keys turn.

    Args:
        kind: "table": rows of a table of the model, the only kind that is given anything.
        tokens: how many places.
        width: d_model; of rotary positions, the turned numbers of a head.
        base: of rotary positions.
    """
    slots = {"tokens": tokens, "width": width, "pairs": width // 2, "base": f"{base:.10g}"}
    if kind == "table":
        return _styles("table", slots, "added")
    waves = kind == "sinusoidal"
    return _styles("positions", slots, "added" if waves else "angles", {"waves"} if waves else ())


def with_positions(kind: PositionCode, parts: Sequence[str], tokens: int, width: int) -> Snippets:
    """The sum that a stack starts from. Given: the vectors of the tokens, and all parts but those positions
    that are computed.

    Args:
        kind: "table" or "sinusoidal".
        parts: the names of what is added to the tokens' vectors.
        tokens: how many.
        width: d_model.
    """
    others = [name for name in parts if name not in ("tokens", "positions")]
    names = ["tokens", "added", *others]
    line = SnippetLine(f"x = {' + '.join(names)}", shape(tokens, width))
    return {
        style: replace(
            snippet,
            lines=(*snippet.lines, line),
            given=("tokens", *snippet.given, *others),
            result="x[@query@, @dimension@]",
        )
        for style, snippet in positions(kind, tokens, width).items()
    }


def _styles(
    name: str,
    slots: Mapping[str, object],
    result: str,
    words: Collection[str] = (),
) -> Snippets:
    """The snippets of a template. result: what the lines assign."""
    cell = f"{result}[@query@, @dimension@]"
    written = templates("around.toml")[name].items()
    return {style: filled_in(template, slots, words, cell) for style, template in written}

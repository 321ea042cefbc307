"""What stands around attention, in each style: heads put together, norms, positions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from model.snippets.snippet import Line, Snippet, Style, shape
from model.trace.records import Attention, NormRecord

Snippets = Mapping[Style, Snippet]
PositionCode = Literal["table", "sinusoidal", "rotary"]
_FUNCTIONAL = Line("import torch.nn.functional as F")
_ONE_TOKEN = "One token."
_SUMMED = "A letter that the result lacks is summed over."


def concatenation(attention: Attention, d_model: int, *, bias: bool) -> Snippets:
    """The outputs of all heads side by side, times W_O. Given: output (head, token, d_v), w."""
    heads, tokens, width = attention.output.shape
    wide, made = heads * width, shape(tokens, d_model)
    before = f"{shape(heads, tokens, width)} → {shape(tokens, wide)}"
    joined = Line("joined = output.transpose(0, 1).flatten(1)", before)
    added = ' + w["output.bias"]' if bias else ""
    plain = Line(
        f'written = joined @ w["output.weight"].T{added}',
        f"{shape(tokens, wide)} @ {shape(wide, d_model)} → {made}",
    )
    einsum = (
        Line(f'by_head = w["output.weight"].unflatten(1, ({heads}, {width}))',
             shape(d_model, heads, width)),
        Line(f'written = torch.einsum("hnd,chd->nc", output, by_head){added}', made),
    )  # fmt: skip
    vector = ', w["output.bias"]' if bias else ""
    torch = (
        _FUNCTIONAL,
        joined,
        Line(f'written = F.linear(joined, w["output.weight"]{vector})', made),
    )
    start = 'w["output.bias"][@dimension@].item()' if bias else "0.0"
    loops = _lines(
        'row = w["output.weight"][@dimension@].tolist()',
        f"total = {start}",
        f"for h in range({heads}):",
        f"    for d in range({width}):",
        f"        total += output[h, @query@, d].item() * row[h * {width} + d]",
    )
    letters = f"h head, n token, d number of a head, c dimension. {_SUMMED}"
    return _styles(
        ((joined, plain), einsum, loops, torch),
        ("output", "w"),
        "written[@query@, @dimension@]",
        "total",
        letters,
    )


def joined(attention: Attention) -> Snippets:
    """The outputs of all heads side by side. Given: output (head, token, d_v)."""
    heads, tokens, width = attention.output.shape
    made = shape(tokens, heads * width)
    line = Line("joined = output.transpose(0, 1).flatten(1)", f"{attention.output.shape} → {made}")
    einsum = (
        Line('by_token = torch.einsum("hnd->nhd", output)', shape(tokens, heads, width)),
        Line("joined = by_token.flatten(1)", made),
    )
    torch = (Line("joined = torch.cat(list(output), dim=-1)", made),)
    loops = _lines(
        "joined = []",
        f"for h in range({heads}):",
        f"    for d in range({width}):",
        "        joined.append(output[h, @query@, d].item())",
    )
    letters = "h head, n token, d number of a head. No letter is summed over: they change places."
    return _styles(
        ((line,), einsum, loops, torch),
        ("output",),
        "joined[@query@, @dimension@]",
        "joined[@dimension@]",
        letters,
    )


def norm(record: NormRecord, *, shifts: bool) -> Snippets:
    """A layer norm or an RMS norm. Given: x (token, d_model), gamma and, where it shifts, beta."""
    tokens, width = record.input.shape
    centres, epsilon = record.kind == "layer", f"{record.epsilon:.6g}"
    made, one = shape(tokens, width), shape(tokens, 1)
    minus, shift = (" - mean" if centres else ""), (" + beta" if shifts else "")
    last = Line(f"y = (x{minus}) / (variance + {epsilon}).sqrt() * gamma{shift}", made)
    if not centres:
        last = Line(f"y = x / (square + {epsilon}).sqrt() * gamma{shift}", made)
    plain = (
        (
            Line("mean = x.mean(-1, keepdim=True)", one),
            Line("variance = x.var(-1, keepdim=True, unbiased=False)", one),
        )
        if centres
        else (Line("square = x.square().mean(-1, keepdim=True)", one),)
    )
    einsum = (
        (
            Line(f'mean = torch.einsum("nc->n", x)[:, None] / {width}', one),
            Line(
                f'variance = torch.einsum("nc,nc->n", x - mean, x - mean)[:, None] / {width}', one
            ),
        )
        if centres
        else (Line(f'square = torch.einsum("nc,nc->n", x, x)[:, None] / {width}', one),)
    )
    beta = "beta" if shifts else "None"
    called = f"F.layer_norm(x, ({width},), gamma, {beta}, {epsilon})"
    if not centres:
        called = f"F.rms_norm(x, ({width},), gamma, {epsilon}){shift}"
    given = ("x", "gamma", "beta") if shifts else ("x", "gamma")
    return _styles(
        ((*plain, last), (*einsum, last), _norm_loops(width, epsilon, centres, shifts),
         (_FUNCTIONAL, Line(f"y = {called}", made))),
        given,
        "y[@query@, @dimension@]",
        "y[@dimension@]",
        f"n token, c dimension. {_SUMMED}",
    )  # fmt: skip


def _norm_loops(width: int, epsilon: str, centres: bool, shifts: bool) -> tuple[Line, ...]:
    mean = (f"mean = sum(row) / {width}",) if centres else ()
    minus = " - mean" if centres else ""
    number = f"(row[c]{minus})" if centres else "row[c]"
    shift = " + beta[c].item()" if shifts else ""
    return _lines(
        "row = x[@query@].tolist()",
        *mean,
        f"variance = sum((number{minus}) ** 2 for number in row) / {width}",
        f"root = (variance + {epsilon}) ** 0.5",
        "y = []",
        f"for c in range({width}):",
        f"    y.append({number} / root * gamma[c].item(){shift})",
    )


def positions(kind: PositionCode, tokens: int, width: int, *, base: float = 10_000.0) -> Snippets:
    """What is added for each place, or the angles by which queries and keys turn.

    kind: "table": rows of a table of the model, the only kind that is given anything. width: d_model; of
    rotary positions, the turned numbers of a head. base: of rotary positions.
    """
    if kind == "table":
        return _table(tokens, width)
    starts = (
        Line(f"places = torch.arange({tokens}).double()", shape(tokens)),
        Line(f"shares = torch.arange(0, {width}, 2).double() / {width}", shape(width // 2)),
        Line(f"frequencies = 1 / {base:.10g} ** shares", shape(width // 2)),
    )
    angles = shape(tokens, width // 2)
    products = [
        Line("angles = places[:, None] * frequencies", angles),
        Line('angles = torch.einsum("n,i->ni", places, frequencies)', angles),
        Line("angles = torch.outer(places, frequencies)", angles),
    ]
    loops = _lines(
        "import math",
        "angles = []",
        f"for i in range({width // 2}):",
        f"    angles.append(@query@ / {base:.10g} ** (2 * i / {width}))",
    )
    ends: tuple[Line, ...] = ()
    result, own = "angles[@query@, @dimension@]", "angles[@dimension@]"
    if kind == "sinusoidal":
        waves = "torch.stack([angles.sin(), angles.cos()], -1).flatten(1)"
        ends = (Line(f"added = {waves}", shape(tokens, width)),)
        loops += _lines("added = [wave(a) for a in angles for wave in (math.sin, math.cos)]")
        result, own = "added[@query@, @dimension@]", "added[@dimension@]"
    plain, einsum, torch = ((*starts, product, *ends) for product in products)
    return _styles((plain, einsum, loops, torch), (), result, own, "n token, i pair of dimensions.")


def with_positions(kind: PositionCode, parts: Sequence[str], tokens: int, width: int) -> Snippets:
    """The sum that a stack starts from. Given: the vectors of the tokens, and all parts but those positions
    that are computed. parts: the names of what is added to them. kind: "table" or "sinusoidal"."""
    others = [name for name in parts if name not in ("tokens", "positions")]
    names = ["tokens", "added", *others]
    line = Line(f"x = {' + '.join(names)}", shape(tokens, width))
    terms = [f"{name}[@query@, c].item()" for name in names if name != "added"]
    loop = Line(f"x = [{' + '.join(terms)} + added[c] for c in range({width})]", f"{width} numbers")
    made = {}
    for style, snippet in positions(kind, tokens, width).items():
        last, result = (
            (loop, "x[@dimension@]") if style == "loops" else (line, "x[@query@, @dimension@]")
        )
        given = ("tokens", *snippet.given, *others)
        made[style] = replace(snippet, lines=(*snippet.lines, last), given=given, result=result)
    return made


def _table(tokens: int, width: int) -> Snippets:
    """The first rows of a table: looked up, or as a product with rows that hold a single 1."""
    made = shape(tokens, width)
    einsum = (
        Line(f"one_hot = torch.eye({tokens}, len(table))"),
        Line('added = torch.einsum("np,pc->nc", one_hot, table)', made),
    )
    torch = (_FUNCTIONAL, Line(f"added = F.embedding(torch.arange({tokens}), table)", made))
    loops = _lines(
        "added = []", f"for c in range({width}):", "    added.append(table[@query@, c].item())"
    )
    return _styles(
        ((Line(f"added = table[:{tokens}]", made),), einsum, loops, torch),
        ("table",),
        "added[@query@, @dimension@]",
        "added[@dimension@]",
        f"n token, p row of the table, c dimension. {_SUMMED}",
    )


def _lines(*codes: str) -> tuple[Line, ...]:
    return tuple(map(Line, codes))


def _styles(
    lines: tuple[tuple[Line, ...], tuple[Line, ...], tuple[Line, ...], tuple[Line, ...]],
    given: tuple[str, ...],
    result: str,
    of_loops: str,
    letters: str,
) -> Snippets:
    """lines: in plain tensors, einsum, loops, and by PyTorch's functions. of_loops: the result of the loops.
    letters: those of the einsum."""
    plain, einsum, loops, torch = lines
    return {
        "plain": Snippet(plain, given, result),
        "einsum": Snippet(einsum, given, result, remark=letters),
        "loops": Snippet(loops, given, of_loops, remark=_ONE_TOKEN),
        "torch": Snippet(torch, given, result),
    }

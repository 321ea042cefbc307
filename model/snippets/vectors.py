"""How queries, keys and values come of x, in each style."""

from collections.abc import Iterator

from model.snippets.loops import of_head
from model.snippets.snippet import Facts, Line, Snippet, Stage, Style, Vector, shape

LETTERS: dict[Stage, str] = {"query": "q", "key": "k", "value": "v"}


def vectors(facts: Facts, vector: Vector, stage: Stage, style: Style) -> Snippet:
    """The lines of queries, keys or values."""
    letter, row = LETTERS[stage], "@query@" if stage == "query" else "@key@"
    given = ("x", "w", "angles") if vector.turned else ("x", "w")
    if style == "loops":
        made = tuple(_loops(facts, vector, stage))
        remark = "One head and one token."
        return Snippet(made, given, f"{letter}[@dimension@]", remark=remark)
    head = "@head@" if stage == "query" else of_head(facts)
    made = (*_mapped(facts, vector, stage, style), *_normed(facts, vector, stage, style))
    turn = tuple(_turned(facts, vector, letter, style))
    remark = _LETTERS + (_TURNING if vector.turned else "") if style == "einsum" else ""
    result = f"{letter}[{head}, {row}, @dimension@]"
    return Snippet((*_imports(vector, style), *made, *turn), given, result, remark=remark)


_LETTERS = (
    "n token, c number of x, h head, d dimension. A letter that the result lacks is summed over."
)
_TURNING = " p pair of dimensions, a and b its two numbers."


def _imports(vector: Vector, style: Style) -> tuple[Line, ...]:
    return (Line("import torch.nn.functional as F"),) if style == "torch" else ()


def _sizes(facts: Facts, stage: Stage) -> tuple[int, int]:
    """Heads, and the width of each."""
    heads = facts.heads if stage == "query" else facts.groups
    return heads, facts.value_width if stage == "value" else facts.width


def _mapped(facts: Facts, vector: Vector, stage: Stage, style: Style) -> Iterator[Line]:
    """x times the matrix, and split into heads."""
    letter, (heads, width) = LETTERS[stage], _sizes(facts, stage)
    wide, x = heads * width, shape(vector.rows, vector.d_model)
    made = shape(heads, vector.rows, width)
    matrix, bias = f'w["{stage}.weight"]', f'w["{stage}.bias"]'
    if style == "einsum":
        split = f"unflatten(0, ({heads}, {width}))"
        by_head = shape(heads, width, vector.d_model)
        yield Line(f"by_head = {matrix}.{split}", by_head)
        yield Line(
            f'{letter} = torch.einsum("nc,hdc->hnd", x, by_head)', f"{x}, {by_head} → {made}"
        )
        if vector.bias:
            yield Line(f"{letter} = {letter} + {bias}.{split}[:, None]", made)
        return
    if style == "torch":
        added = f", {bias}" if vector.bias else ""
        yield Line(f"{letter} = F.linear(x, {matrix}{added})", shape(vector.rows, wide))
    else:
        added = f" + {bias}" if vector.bias else ""
        shapes = f"{x} @ {shape(vector.d_model, wide)} → {shape(vector.rows, wide)}"
        yield Line(f"{letter} = x @ {matrix}.T{added}", shapes)
    yield Line(f"{letter} = {letter}.unflatten(-1, ({heads}, {width})).transpose(0, 1)", made)


def _normed(facts: Facts, vector: Vector, stage: Stage, style: Style) -> Iterator[Line]:
    norm, letter = vector.norm, LETTERS[stage]
    if norm is None:
        return
    heads, width = _sizes(facts, stage)
    made = shape(heads, vector.rows, width)
    gamma, beta = f'w["{stage}_norm.gamma"]', f'w["{stage}_norm.beta"]'
    if style == "torch":
        kind = "layer_norm" if norm.centres else "rms_norm"
        shift = f" + {beta}" if norm.shifts else ""
        call = f"F.{kind}({letter}, ({width},), {gamma}, eps={norm.epsilon:.6g})"
        yield Line(f"{letter} = {call}{shift}", made)
        return
    if norm.centres:
        yield Line(f"{letter} = {letter} - {letter}.mean(-1, keepdim=True)", made)
    root = f"({letter}.square().mean(-1, keepdim=True) + {norm.epsilon:.6g}).sqrt()"
    shift = f" + {beta}" if norm.shifts else ""
    yield Line(f"{letter} = {letter} / {root} * {gamma}{shift}", made)


def _turned(facts: Facts, vector: Vector, letter: str, style: Style) -> Iterator[Line]:
    """Rotary positions: each pair of dimensions turned by the angle of its token."""
    if not vector.turned:
        return
    half = shape(vector.rows, vector.turned // 2)
    part = vector.turned < facts.width
    read = "turning" if part else letter
    if part:
        halves = f"{letter}[..., :{vector.turned}], {letter}[..., {vector.turned}:]"
        yield Line(f"turning, still = {halves}")
    in_halves = vector.pairs == "halves"
    pairs = f"{read}.chunk(2, -1)" if in_halves else f"{read}[..., 0::2], {read}[..., 1::2]"
    yield Line(f"first, second = {pairs}")
    yield from _turns(style, half)
    joined = "torch.cat(turned, -1)" if in_halves else "torch.stack(turned, -1).flatten(-2)"
    result = f"torch.cat([{joined}, still], -1)" if part else joined
    heads = facts.heads if letter == "q" else facts.groups
    yield Line(f"{letter} = {result}", shape(heads, vector.rows, facts.width))


def _turns(style: Style, half: str) -> Iterator[Line]:
    """The pairs, turned by their angles."""
    if style == "torch":
        yield Line("turns = torch.polar(torch.ones_like(angles), angles)", f"{half}, complex")
        yield Line("numbers = torch.complex(first, second) * turns", "each pair is one number")
        yield Line("turned = numbers.real, numbers.imag")
        return
    yield Line("cosine, sine = angles.cos(), angles.sin()", half)
    if style == "plain":
        yield Line("turned = first * cosine - second * sine, second * cosine + first * sine")
        return
    yield Line("rows = torch.stack([cosine, -sine, sine, cosine], -1)")
    yield Line("turns = rows.unflatten(-1, (2, 2))", "a 2 × 2 matrix for each angle")
    yield Line("pairs = torch.stack([first, second], -1)")
    yield Line('turned = torch.einsum("npab,hnpb->hnpa", turns, pairs).unbind(-1)')


def _loops(facts: Facts, vector: Vector, stage: Stage) -> Iterator[Line]:
    letter, (heads, width) = LETTERS[stage], _sizes(facts, stage)
    head = "@head@" if stage == "query" else of_head(facts)
    row = "@query@" if stage == "query" else "@key@"
    start = f'w["{stage}.bias"][first + c].item()' if vector.bias else "0.0"
    sizes = f"{heads * width} lists of {vector.d_model}"
    yield Line(f'row, matrix = x[{row}].tolist(), w["{stage}.weight"].tolist()', sizes)
    yield Line(f"first = {head} * {width}", "row of the matrix")
    yield Line(f"{letter} = []")
    yield Line(f"for c in range({width}):", "each dimension")
    yield Line(f"    total = {start}")
    yield Line(f"    for d in range({vector.d_model}):", "each number of x")
    yield Line("        total += row[d] * matrix[first + c][d]")
    yield Line(f"    {letter}.append(total)", f"{width} numbers")
    yield from _norm_loops(vector, stage, width)
    yield from _turn_loops(vector, letter, row)


def _norm_loops(vector: Vector, stage: Stage, width: int) -> Iterator[Line]:
    norm, letter = vector.norm, LETTERS[stage]
    if norm is None:
        return
    if norm.centres:
        yield Line(f"{letter} = [number - sum({letter}) / {width} for number in {letter}]")
    squares = f"sum(number**2 for number in {letter})"
    yield Line(f"root = ({squares} / {width} + {norm.epsilon:.6g}) ** 0.5")
    shift = f' + w["{stage}_norm.beta"][c].item()' if norm.shifts else ""
    normed = f'{letter}[c] / root * w["{stage}_norm.gamma"][c].item(){shift}'
    yield Line(f"{letter} = [{normed} for c in range({width})]", f"{width} numbers")


def _turn_loops(vector: Vector, letter: str, row: str) -> Iterator[Line]:
    if not vector.turned:
        return
    half = vector.turned // 2
    a, b = ("p", f"p + {half}") if vector.pairs == "halves" else ("2 * p", "2 * p + 1")
    yield Line(f"for p in range({half}):", "each pair of dimensions")
    yield Line(f"    cosine, sine = angles[{row}, p].cos().item(), angles[{row}, p].sin().item()")
    yield Line(f"    before, other = {letter}[{a}], {letter}[{b}]")
    turned = "before * cosine - other * sine, other * cosine + before * sine"
    yield Line(f"    {letter}[{a}], {letter}[{b}] = {turned}")

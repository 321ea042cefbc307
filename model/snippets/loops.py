"""The stages of attention in loops over single numbers: one head, one query.

The stages before are those in plain tensors: a script with all of them in loops would be long.
"""

from collections.abc import Sequence

from model.snippets.plain import SINK, drop, mask_words, steps_before
from model.snippets.snippet import Facts, Line, Snippet, Stage

_ONE_ROW = "One head and one query: the loops that all heads and queries run side by side."


def written(*codes: str) -> tuple[Line, ...]:
    """Lines with nothing beside them."""
    return tuple(map(Line, codes))


def _snippet(
    lines: Sequence[Line],
    given: tuple[str, ...],
    result: str,
    after: tuple[Stage, ...] = (),
    remark: str = "",
) -> Snippet:
    return Snippet(tuple(lines), given, result, after, " ".join(filter(None, (_ONE_ROW, remark))))


def of_head(facts: Facts) -> str:
    """The index of the head of keys and values that the chosen head reads."""
    return "@head@" if facts.shared == 1 else f"@head@ // {facts.shared}"


def _row(facts: Facts, name: str) -> Line:
    return Line(f"row = {name}[@head@, @query@].tolist()", f"{facts.keys} numbers")


def scores(facts: Facts) -> Snippet:
    lines = (
        Line("query = q[@head@, @query@].tolist()", f"{facts.width} numbers"),
        Line(f"keys = k[{of_head(facts)}].tolist()", f"{facts.keys} lists of {facts.width}"),
        Line("scores = []"),
        Line(f"for j in range({facts.keys}):", "each key"),
        Line("    total = 0.0"),
        Line(f"    for c in range({facts.width}):", "each dimension"),
        Line("        total += query[c] * keys[j][c]"),
        Line("    scores.append(total)", f"{facts.keys} numbers"),
    )
    return _snippet(lines, ("q", "k"), "scores[@key@]")


def scaled(facts: Facts) -> Snippet:
    lines = (
        _row(facts, "scores"),
        Line("scaled = []"),
        Line("for score in row:", "each key"),
        Line(f"    scaled.append(score{facts.scaling})", f"{facts.keys} numbers"),
    )
    return _snippet(lines, ("scores",), "scaled[@key@]", ("scores",))


def capped(facts: Facts) -> Snippet:
    before = facts.steps_before("capped")
    if facts.cap is None:
        line = Line("capped = scaled[@head@, @query@].tolist()", "not capped")
        return _snippet((line,), ("scaled",), "capped[@key@]", before)
    lines = (
        Line("import math"),
        _row(facts, "scaled"),
        Line("capped = []"),
        Line("for score in row:", "each key"),
        Line(f"    capped.append({facts.cap!r} * math.tanh(score / {facts.cap!r}))"),
    )
    return _snippet(lines, ("scaled",), "capped[@key@]", before)


def biased(facts: Facts) -> Snippet:
    read, before = facts.before("biased"), facts.steps_before("biased")
    if not facts.has_bias:
        line = Line(f"biased = {read}[@head@, @query@].tolist()", "no bias")
        return _snippet((line,), (read,), "biased[@key@]", before)
    heads, queries, _ = facts.bias_shape
    places = f"{'@head@' if heads > 1 else '0'}, {'@query@' if queries > 1 else '0'}, j"
    lines = (
        _row(facts, read),
        Line("biased = []"),
        Line(f"for j in range({facts.keys}):", "each key"),
        Line(f"    biased.append(row[j] + bias[{places}].item())"),
    )
    return _snippet(lines, (read, "bias"), "biased[@key@]", before)


def masked(facts: Facts) -> Snippet:
    read, before = facts.before("masked"), facts.steps_before("masked")
    if facts.mask == "none":
        line = Line(f"masked = {read}[@head@, @query@].tolist()", "no key is masked")
        return _snippet((line,), (read,), "masked[@key@]", before)
    index = "@head@, @query@, j" if len(facts.mask_shape) == 3 else "@query@, j"
    seen = "j <= @query@" if facts.mask == "future" else f"mask[{index}]"
    lines = (
        _row(facts, read),
        Line("masked = []"),
        Line(f"for j in range({facts.keys}):", "each key"),
        Line(f"    masked.append(row[j] if {seen} else {facts.fill})", f"{facts.keys} numbers"),
    )
    given = (read,) if facts.mask == "future" else (read, "mask")
    return _snippet(lines, given, "masked[@key@]", before, mask_words(facts))


def weights(facts: Facts) -> Snippet:
    read = facts.before_softmax
    largest, total = "max(row)", "sum(exponentials)"
    remark = ""
    if facts.empty_rows:
        largest, total = "max(row + [-3e38])", "sum(exponentials) or 1.0"
        remark = "A row whose every key is masked becomes 0."
    if facts.has_sinks:
        largest, total, remark = (
            "max(row + [sink])",
            "sum(exponentials) + math.exp(sink - largest)",
            SINK,
        )
    sink = (Line("sink = sinks[@head@].item()"),) if facts.has_sinks else ()
    sums = "sum 1 with the sink" if facts.has_sinks else "sum 1"
    lines = (
        Line("import math"),
        _row(facts, read),
        *sink,
        Line(f"largest = {largest}"),
        Line("exponentials = []"),
        Line("for score in row:", "each key"),
        Line("    exponentials.append(math.exp(score - largest))"),
        Line(f"total = {total}"),
        Line("weights = [one / total for one in exponentials]", f"{facts.keys} numbers, {sums}"),
    )
    given = (read, "sinks") if facts.has_sinks else (read,)
    return _snippet(lines, given, "weights[@key@]", steps_before(facts), remark)


def output(facts: Facts) -> Snippet:
    dropping, name = drop(facts)
    lines = (
        *dropping,
        Line(
            f"row, values = {name}[@head@, @query@].tolist(), v[{of_head(facts)}].tolist()",
            f"{facts.keys} numbers, {facts.keys} lists of {facts.value_width}",
        ),
        Line("output = []"),
        Line(f"for c in range({facts.value_width}):", "each dimension"),
        Line("    total = 0.0"),
        Line(f"    for j in range({facts.keys}):", "each key"),
        Line("        total += row[j] * values[j][c]"),
        Line("    output.append(total)", f"{facts.value_width} numbers"),
    )
    after = (*steps_before(facts), "weights")
    return _snippet(lines, ("weights", "v"), "output[@dimension@]", after)

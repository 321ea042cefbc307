"""The stages of attention in plain tensors, all heads at once; and in einsum, which changes the products."""

from model.snippets.snippet import Facts, Line, Snippet, Stage, Style, shape

_CELL = "[@head@, @query@, @key@]"
_SUMMED = "A letter that the result lacks is summed over."


def scores(facts: Facts, style: Style) -> Snippet:
    query, key = _shape_of(facts, "q"), _shape_of(facts, "k")
    result = f"scores{_CELL}"
    if style == "einsum":
        lines, letters = _einsum_scores(facts, f"{query}, {key} → {facts.all_cells}")
        return Snippet(lines, ("q", "k"), result, remark=letters)
    turned = shape(facts.heads, facts.width, facts.keys)
    repeated = repeat(facts, "k")
    query_and_key = f"{query} @ {turned} → {facts.all_cells}"
    lines = (*repeated, Line("scores = q @ k.transpose(-2, -1)", query_and_key))
    return Snippet(lines, ("q", "k"), result)


def _einsum_scores(facts: Facts, shapes: str) -> tuple[tuple[Line, ...], str]:
    letters = "q query, k key, d dimension"
    if facts.shared == 1:
        line = Line('scores = torch.einsum("hqd,hkd->hqk", q, k)', shapes)
        return (line,), f"{letters}, h head. {_SUMMED}"
    split = f"({facts.groups}, {facts.shared})"
    return (
        Line(f"grouped = q.unflatten(0, {split})", _grouped(facts, facts.queries, facts.width)),
        Line('scores = torch.einsum("gsqd,gkd->gsqk", grouped, k)'),
        Line("scores = scores.flatten(0, 1)", facts.all_cells),
    ), f"{letters}, g group of heads that share a key head, s head in it. {_SUMMED}"


def _grouped(facts: Facts, rows: int, columns: int) -> str:
    return shape(facts.groups, facts.shared, rows, columns)


def _shape_of(facts: Facts, letter: str) -> str:
    """Of queries, keys and values as the trace has them."""
    if letter == "q":
        return shape(facts.heads, facts.queries, facts.width)
    return shape(facts.groups, facts.keys, facts.width if letter == "k" else facts.value_width)


def repeat(facts: Facts, letter: str) -> tuple[Line, ...]:
    """Keys or values once for each head of queries, where heads share them."""
    if facts.shared == 1:
        return ()
    width = facts.width if letter == "k" else facts.value_width
    shapes = f"{_shape_of(facts, letter)} → {shape(facts.heads, facts.keys, width)}"
    return (Line(f"{letter} = {letter}.repeat_interleave({facts.shared}, 0)", shapes),)


def scaled(facts: Facts) -> Snippet:
    line = Line(f"scaled = scores{facts.scaling}", facts.all_cells)
    if facts.scale == 1:
        line = Line("scaled = scores", "not scaled")
    return Snippet((line,), ("scores",), f"scaled{_CELL}", ("scores",))


def capped(facts: Facts) -> Snippet:
    before = facts.steps_before("capped")
    line = Line("capped = scaled", "not capped")
    if facts.cap is not None:
        line = Line(f"capped = {facts.cap!r} * (scaled / {facts.cap!r}).tanh()", facts.all_cells)
    return Snippet((line,), ("scaled",), f"capped{_CELL}", before)


def biased(facts: Facts) -> Snippet:
    read, before = facts.before("biased"), facts.steps_before("biased")
    if not facts.has_bias:
        line = Line(f"biased = {read}", "no bias")
        return Snippet((line,), (read,), f"biased{_CELL}", before)
    line = Line(f"biased = {read} + bias", facts.all_cells)
    return Snippet((line,), (read, "bias"), f"biased{_CELL}", before)


def forbidden(facts: Facts) -> tuple[tuple[Line, ...], str]:
    """The lines that make the mask, and its name where True means masked."""
    if facts.mask != "future":
        return (), "~mask"
    sizes = f"{facts.queries}, {facts.keys}"
    line = f"future = torch.ones({sizes}, dtype=torch.bool).triu(1)"
    return (Line(line, shape(facts.queries, facts.keys)),), "future"


def masked(facts: Facts) -> Snippet:
    read, before = facts.before("masked"), facts.steps_before("masked")
    if facts.mask == "none":
        line = Line(f"masked = {read}", "no key is masked")
        return Snippet((line,), (read,), f"masked{_CELL}", before)
    lines, name = forbidden(facts)
    fill = Line(f"masked = {read}.masked_fill({name}, {facts.fill})", facts.all_cells)
    given = (read,) if facts.mask == "future" else (read, "mask")
    return Snippet((*lines, fill), given, f"masked{_CELL}", before, mask_words(facts))


def mask_words(facts: Facts) -> str:
    return "mask: True where the query may attend to the key." if facts.mask == "own" else ""


def steps_before(facts: Facts) -> tuple[Stage, ...]:
    """The stages before the softmax."""
    return facts.steps_before("weights")


def weights(facts: Facts) -> Snippet:
    read = facts.before_softmax
    if facts.has_sinks:
        lines = with_sinks(facts, read)
        given = (read, "sinks")
        return Snippet(lines, given, f"weights{_CELL}", steps_before(facts), SINK)
    zero = ".nan_to_num()" if facts.empty_rows else ""
    line = Line(f"weights = {read}.softmax(-1){zero}", f"{facts.all_cells}, rows sum to 1")
    remark = "A row whose every key is masked has no softmax; it becomes 0." if zero else ""
    return Snippet((line,), (read,), f"weights{_CELL}", steps_before(facts), remark)


SINK = "The sink of each head is one more column of the softmax. Its weight is left out: it has no value."


def with_sinks(facts: Facts, read: str, softmax: str = "rows.softmax(-1)") -> tuple[Line, ...]:
    """The softmax with the sinks in one more column, which is then left out."""
    longer = shape(facts.heads, facts.queries, facts.keys + 1)
    column = f"sinks[:, None, None].expand(-1, {facts.queries}, 1)"
    return (
        Line(f"rows = torch.cat([{read}, {column}], -1)", longer),
        Line(f"weights = {softmax}[..., :-1]", f"{facts.all_cells}, the sink left out"),
    )


def drop(facts: Facts) -> tuple[tuple[Line, ...], str]:
    """The lines of dropout, and the name of the weights after it."""
    if not facts.dropout:
        return (), "weights"
    sizes = f"{facts.heads}, {facts.queries}, {facts.keys}"
    return (
        Line(f"seeded = torch.Generator().manual_seed({facts.seed})"),
        Line(f"kept = torch.rand({sizes}, generator=seeded) >= {facts.dropout!r}", facts.all_cells),
        Line(f"dropped = weights * kept / (1 - {facts.dropout!r})", facts.all_cells),
    ), "dropped"


def output(facts: Facts, style: Style) -> Snippet:
    dropping, name = drop(facts)
    after = (*steps_before(facts), "weights")
    result = "output[@head@, @query@, @dimension@]"
    made = shape(facts.heads, facts.queries, facts.value_width)
    if style == "einsum":
        lines, letters = _einsum_output(facts, name, made)
        return Snippet((*dropping, *lines), ("weights", "v"), result, after, letters)
    value = shape(facts.heads, facts.keys, facts.value_width)
    line = Line(f"output = {name} @ v", f"{facts.all_cells} @ {value} → {made}")
    lines = (*dropping, *repeat(facts, "v"), line)
    return Snippet(lines, ("weights", "v"), result, after)


def _einsum_output(facts: Facts, name: str, made: str) -> tuple[tuple[Line, ...], str]:
    letters = "q query, k key, d dimension of v"
    if facts.shared == 1:
        shapes = f"{facts.all_cells}, {_shape_of(facts, 'v')} → {made}"
        line = Line(f'output = torch.einsum("hqk,hkd->hqd", {name}, v)', shapes)
        return (line,), f"{letters}, h head. {_SUMMED}"
    split = f"({facts.groups}, {facts.shared})"
    grouped = _grouped(facts, facts.queries, facts.keys)
    return (
        Line(f"grouped = {name}.unflatten(0, {split})", grouped),
        Line('output = torch.einsum("gsqk,gkd->gsqd", grouped, v)'),
        Line("output = output.flatten(0, 1)", made),
    ), f"{letters}, g group of heads that share a value head, s head in it. {_SUMMED}"

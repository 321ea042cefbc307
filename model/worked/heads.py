"""Heads: one product cut into heads, a circuit of two layers, shapes and what they cost (§7)."""

import numpy as np

from model.arithmetic import attention, sizes
from model.arithmetic.composition import composition, random_composition
from model.system.words import Words
from model.worked import latex
from model.worked.example import Array64, Input, QuantityKind, Sheet, given, numbered, whole, worked
from model.worked.ladder import Q_MATRIX, TOKENS, VECTORS
from model.worked.notes import PAPER, TWO_LAYERS

say = Words("worked.heads")

_MODELS = ("first model", "second model")
_ENDS = ("first column", "last column")


@worked(
    "§7",
    say("large_matrix_split"),
    say("queries_heads_come"),
    VECTORS,
    Q_MATRIX,
    whole("heads", "Heads", 2, 1, 4),
)
def one_matrix_then_split(sheet: Sheet, x: Array64, q_matrix: Array64, heads: int) -> None:
    width = sizes.head_width(len(q_matrix), heads)
    query = sheet.project(x, q_matrix, "Q", TOKENS, title="One large product")
    for head, part in enumerate(attention.split_heads(query, heads)):
        start, end = head * width, (head + 1) * width
        title = say("head_columns", head=head, start=start, end=end - 1)
        formula, columns = r"Q^{(h)} = Q_{:,\ h d_k : (h+1) d_k}", numbered("dim", width, start)
        sheet.step(title, formula, part, TOKENS, columns, quantity="query")
        sheet.numbers(r"\text{token 0: } @", part[0])
    small = np.concatenate([x @ columns for columns in np.split(q_matrix, heads, axis=1)], axis=1)
    title = say("large_product_minus")
    sheet.difference(query, small, title, TOKENS, "dim")
    sheet.remark(say("h_small_matrices"))


@worked(
    "§7",
    say("wide_head"),
    say("heads_share_width"),
    whole("widths", say("widths_models"), [512, 256], 1, 16_384, _MODELS),
    whole("heads", "Heads of each", [8, 8], 1, 128, _MODELS),
)
def head_widths(sheet: Sheet, widths: Array64, heads: Array64) -> None:
    pairs = zip(widths, heads, strict=True)
    each = np.array([sizes.head_width(int(width), int(count)) for width, count in pairs])
    models = tuple(f"width {width:g}" for width in widths)
    formula = r"d_k = \frac{d_{\text{model}}}{h}"
    sheet.step(say("width_head"), formula, each, models)
    sheet.numbers(r"\frac{@}{@} = @", widths[0], heads[0], each[0])

    ends, formula = (0, each[1] - 1), r"0\ \text{to}\ d_k - 1"
    sheet.step(say("columns_first_head"), formula, ends, _ENDS)
    sheet.numbers(r"0\ \text{to}\ @ - 1 = @", each[1], ends[1])
    sheet.remark(say("notes_count_head"))

    starts = np.arange(heads[1]) * each[1]
    table = np.stack([starts, starts + each[1] - 1], axis=1)
    title = say("columns_every_head", widths=widths[1])
    formula = r"h\,d_k\ \text{to}\ (h+1)\,d_k - 1"
    sheet.step(title, formula, table, "head", _ENDS)
    sheet.numbers(r"\text{head } @: @\ \text{to}\ @", len(table) - 1, *table[-1])


_WORDS = ("start", "Tom", "Hill", "met")
_WORD, _PLACE, _BEFORE = slice(0, 4), slice(4, 8), slice(8, 12)
_DIMS = (*_WORDS, *numbered("pos", 4), *(f"({word})" for word in _WORDS))
_WIDTH = len(_DIMS)
_Head = tuple[Array64, Array64]  # W_QK and W_OV


def _strength(name: str, label: str, value: float) -> Input:
    return given(name, f"{label} (chosen here)", value, lowest=0.1)


# A vector has one part for the word, one for the position, and one for the word before, which is empty until
# layer 0 fills it. Each head is two matrices (Elhage et al. 2021, "A Mathematical Framework for Transformer
# Circuits"): W_QK, with 1/√d_k in it, says where it looks, W_OV what it writes.
@worked(
    "§7",
    say("induction_circuit_layers"),
    say("head_layer_0_writes"),
    whole("ids", f"Token ids (0 to 3: {', '.join(_WORDS)})", [0, 1, 2, 1], 0, 3, "token"),
    _strength("look", say("strength_attention_token"), 6),
    _strength("match", say("strength_match"), 6),
    _strength("copy", say("strength_copy"), 5),
)
def induction_circuit(sheet: Sheet, ids: Array64, look: float, match: float, copy: float) -> None:
    words = [_WORDS[int(one)] for one in ids]
    tokens = tuple(f"{at} {word}" for at, word in enumerate(words))
    x = np.concatenate([np.eye(4)[ids.astype(int)], np.eye(4), np.zeros((4, 4))], axis=1)
    formula = r"x = [\,\text{word},\ \text{position},\ \text{word before}\,]"
    _rows(sheet, "Vectors", formula, x, tokens)
    sheet.remark(say("hot_number_read"))
    first = (
        _matrix(sheet, 0, "QK", _PLACE, _PLACE, look * np.eye(4, k=-1)),
        _matrix(sheet, 0, "OV", _WORD, _BEFORE, np.eye(4)),
    )
    written = _previous_token_head(sheet, x, tokens, first)
    second = (
        _matrix(sheet, 1, "QK", _WORD, _BEFORE, match * np.eye(4)),
        _matrix(sheet, 1, "OV", _WORD, _WORD, copy * np.eye(4)),
    )
    _compose(sheet, first, second)
    _induction_head(sheet, (x, written), tokens, second)
    _predict(sheet, (x, written), words[-1], second)


def _rows(sheet: Sheet, title: str, formula: str, rows: Array64, tokens: tuple[str, ...]) -> None:
    sheet.step(title, formula, rows, tokens, _DIMS, quantity="output")
    sheet.numbers(r"\text{@: } @", tokens[-1], rows[-1])


def _matrix(
    sheet: Sheet, layer: int, letters: str, reads: slice, meets: slice, block: Array64
) -> Array64:
    """One matrix of a head: zeros but for one block."""
    result = np.zeros((_WIDTH, _WIDTH))
    result[reads, meets] = block
    factors = r"W_Q W_K^\top / \sqrt{d_k}" if letters == "QK" else "W_V W_O"
    formula = rf"W_{{\text{{{letters}}}}}^{{({layer})}} = {factors}"
    quantity: QuantityKind = "score" if letters == "QK" else "value"
    sheet.step(f"Layer {layer}: W_{letters}", formula, result, _DIMS, _DIMS, quantity=quantity)
    row, column = (int(one) for one in np.argwhere(result)[0])
    sheet.numbers(r"\text{(@, @): } @", _DIMS[row], _DIMS[column], result[row, column])
    return result


def _previous_token_head(sheet: Sheet, x: Array64, tokens: tuple[str, ...], head: _Head) -> Array64:
    look, write = head
    title, formula = "Layer 0: scores", r"S = x\, W_{\text{QK}}\, x^\top"
    scores = sheet.scores(x @ look, x, tokens, cell=(-1, 2), title=title, formula=formula)
    weights = _causal(sheet, 0, scores, tokens)
    written = weights @ x @ write
    _rows(sheet, "What layer 0 writes", r"h = A\, x\, W_{\text{OV}}", written, tokens)
    sheet.remark(say("last_columns_now"))
    return written


def _causal(sheet: Sheet, layer: int, scores: Array64, tokens: tuple[str, ...]) -> Array64:
    allowed = attention.causal_mask(len(scores))
    hidden, title = attention.masked(scores, allowed), f"Layer {layer}: weights"
    return sheet.weights(hidden, tokens, row=len(scores) - 1, allowed=allowed, title=title)


def _compose(sheet: Sheet, first: _Head, second: _Head) -> None:
    match, copy = second
    through = (match @ first[1].T)[_WORD, _WORD]
    formula = r"W_{\text{QK}}^{(1)}\, (W_{\text{OV}}^{(0)})^\top"
    sheet.step(say("word_word_through"), formula, through, _WORDS, _WORDS, quantity="score")
    sheet.numbers(r"\text{(@, @): } @", _WORDS[1], _WORDS[1], through[1, 1])
    sheet.remark(say("much_word_row_scores"))
    ratios = [composition(first[1], one) for one in (match, match.T, copy)]
    formula = r"\frac{\|W_{\text{OV}}^{(0)}\, W\|_F}{\|W_{\text{OV}}^{(0)}\|_F\, \|W\|_F}"
    names = ("Q: W = W_QK", "K: W = its transpose", "V: W = W_OV")
    sheet.step(say("composition_heads"), formula, ratios, names)
    sheet.numbers(r"\text{Q, K, V: } @", np.array(ratios))
    sheet.remark(
        say("later_head_reads", width=_WIDTH, random_composition=random_composition(_WIDTH))
    )


def _induction_head(
    sheet: Sheet, parts: tuple[Array64, Array64], tokens: tuple[str, ...], head: _Head
) -> None:
    x, written = parts
    queries = (x + written) @ head[0]
    for letter, name, part in (("x", "the embeddings", x), ("h", "layer 0", written)):
        formula = rf"(x + h)\, W_{{\text{{QK}}}}\, {letter}^\top"
        title = say("layer_1_scores_keys", name=name)
        sheet.scores(queries, part, tokens, cell=(-1, 2), title=title, formula=formula)
    sheet.remark(say("score_sum_both_comes"))
    _causal(sheet, 1, queries @ (x + written).T, tokens)


def _predict(sheet: Sheet, parts: tuple[Array64, Array64], word: str, head: _Head) -> None:
    x, written = parts
    logits = _logits(x + written, head)
    formula = r"\ell = (x' + A\, x'\, W_{\text{OV}})_{\text{last},\ \text{word}}"
    sheet.step("Logits", formula, logits, _WORDS, quantity="score")
    sheet.numbers(r"\ell = @", logits)
    shares = np.stack([attention.softmax(logits), attention.softmax(_logits(x, head))])
    title, formula = say("probabilities_without_layer"), r"p = \mathrm{softmax}(\ell)"
    rows = ("both heads", "layer 1 alone")
    sheet.step(title, formula, shares, rows, _WORDS, quantity="weight")
    sheet.numbers(latex.softmax(logits, shares[0]))
    best = [_WORDS[int(one)] for one in shares.argmax(1)]
    sheet.remark(say("after_circuit_predicts", word=word, first_best=best[0], best=best[1]))


def _logits(stream: Array64, head: _Head) -> Array64:
    """(word,): the last token's logits after the induction head."""
    look, write = head
    allowed = attention.causal_mask(len(stream))
    run = attention.attend(stream @ look, stream, stream @ write, allowed=allowed, scale=1.0)
    result: Array64 = (stream + run.output)[-1, _WORD]
    return result


LONG_WALK = PAPER.at(say("multiheadattention_comment_forward"))
SHORT_WALK = TWO_LAYERS.at("Forward Function Walkthrough")
_OPERATIONS: tuple[tuple[str, QuantityKind], ...] = (
    (r"X", "other"),
    (r"X W_Q,\ X W_K,\ X W_V", "query"),
    (r"\text{split the width: } d_{\text{model}} = h \cdot d_k", "query"),
    (r"\text{swap token and head}", "query"),
    (r"Q K^\top", "score"),
    (r"\mathrm{softmax}", "weight"),
    (r"A V", "output"),
    (r"\text{swap head and token}", "output"),
    (r"\text{concat: } h \cdot d_k = d_{\text{model}}", "output"),
    (r"\text{context} \cdot W_O", "output"),
)


def size_inputs(batch: int, length: int, width: int, heads: int) -> tuple[Input, ...]:
    """Batch, length, width and number of heads of one attention layer."""
    counts = {"Batch": batch, "Length": length, "Width": width, "Heads": heads}
    return tuple(whole(label.lower(), label, n, 1, 1_000_000) for label, n in counts.items())


def _walk(sheet: Sheet, batch: int, length: int, width: int, heads: int) -> None:
    stages = sizes.shape_walk(batch, length, width, heads)
    for stage, (formula, quantity) in zip(stages, _OPERATIONS, strict=True):
        sheet.step(stage.name, formula, stage.shape, stage.axes, quantity=quantity)
        sheet.numbers(latex.shape(stage.shape))


@worked(
    "§7",
    say("walk_through_shapes"),
    say("every_operation_multi"),
    *size_inputs(32, 16, 512, 8),
)
def shape_walk_c(sheet: Sheet, batch: int, length: int, width: int, heads: int) -> None:
    _walk(sheet, batch, length, width, heads)


@worked(
    "§7",
    say("walk_through_shapes_batch"),
    say("same_walk_short"),
    *size_inputs(2, 4, 512, 8),
)
def shape_walk_d(sheet: Sheet, batch: int, length: int, width: int, heads: int) -> None:
    _walk(sheet, batch, length, width, heads)


@worked(
    "§7",
    say("why_contiguous_stands"),
    say("swapping_axes_leaves"),
    whole("length", "Length", 3, 1, 16),
    whole("heads", "Heads", 2, 1, 8),
    whole("head_width", "Width of a head", 4, 1, 16),
)
def contiguous_before_merge(sheet: Sheet, length: int, heads: int, head_width: int) -> None:
    laid_out = np.arange(length * heads * head_width).reshape(length, heads, head_width)
    swapped = laid_out.swapaxes(0, 1)
    strides = np.array([laid_out.strides, swapped.strides]) / laid_out.itemsize
    sheet.step(
        say("numbers_skip_step"),
        r"\text{stride}",
        strides,
        ("token, head, d_k", "head, token, d_k"),
        ("first axis", "second axis", "third axis"),
    )
    sheet.numbers(r"@ \to @", *strides)
    sheet.remark(say("transpose_moves_numbers"))

    order = swapped.reshape(heads * length, head_width)
    rows = tuple(f"head {head}, token {token}" for head in range(heads) for token in range(length))
    title = say("numbers_lie_memory")
    formula = r"\text{address of } (h, t, d)"
    sheet.step(title, formula, order, rows, "dim")
    sheet.numbers(r"\text{token 1 of head 0: } @", order[min(1, length - 1)])

    arrays = (laid_out, swapped, np.ascontiguousarray(swapped))
    flags = [array.flags.c_contiguous for array in arrays]
    names = ("before the swap", "after the swap", "after contiguous()")
    title, formula = say("unbroken_run_1_yes"), r"\text{strides fall as in a fresh array}"
    sheet.step(title, formula, flags, names)
    sheet.numbers("@", np.array(flags))
    sheet.remark(say("view_needs_unbroken"))


@worked(
    "§7",
    say("parameters_four_projections"),
    say("w_q_w_k_w_v_w_o"),
    whole("width", "Width d_model", 512, 1, 16_384),
)
def projection_parameters(sheet: Sheet, width: int) -> None:
    names, formula = ("W_Q", "W_K", "W_V", "W_O"), r"d_{\text{model}} \times d_{\text{model}}"
    sheet.step(say("parameters_projection"), formula, [width * width] * 4, names)
    sheet.numbers(r"@ \times @ = @", width, width, width * width)
    widths = (width, 2 * width, 4 * width)
    counts = [sizes.projection_parameters(size) for size in widths]
    sheet.step("All four together", r"4\, d_{\text{model}}^2", counts[0])
    sheet.numbers(r"4 \cdot @^2 = @", width, counts[0])
    sheet.remark(say("biases_any_add_4"))
    title, columns = say("four_times_width"), tuple(f"width {n}" for n in widths)
    sheet.step(title, r"4\, d_{\text{model}}^2", counts, columns)
    sheet.numbers("@", np.array(counts))
    sheet.remark(say("quadratic_twice_width"))


@worked(
    "§7",
    "Words and tokens",
    say("cost_grows_tokens"),
    whole("tokens", "Tokens", 1024, 1, 1_000_000),
    given("rate", say("words_token"), 0.75, lowest=0, highest=2),
)
def words_and_tokens(sheet: Sheet, tokens: int, rate: float) -> None:
    sheet.step(say("words_token"), "r", rate)
    sheet.numbers("r = @", rate)
    sheet.remark(say("rough_figure_english"))
    sheet.step("Words that fit", r"\text{tokens} \cdot r", tokens * rate)
    sheet.numbers(r"@ \cdot @ = @", tokens, rate, tokens * rate)


@worked(
    "§7",
    say("memory_operations_stage"),
    say("scores_weights_hold"),
    *size_inputs(32, 16, 512, 8),
    whole("bytes", say("bytes_number"), 4, 1, 8),
)
def memory_and_operations(
    sheet: Sheet, batch: int, length: int, width: int, heads: int, bytes: int
) -> None:
    costs = sizes.attention_costs(batch, length, width, heads)
    names = tuple(cost.name for cost in costs)
    kept = np.array([cost.numbers for cost in costs])
    formula = r"\text{batch} \cdot h \cdot n^2\ \text{for scores}"
    sheet.step(say("numbers_stage_produces"), formula, kept, names)
    sheet.numbers(r"@ \cdot @ \cdot @^2 = @", batch, heads, length, kept[1])

    memory = kept * float(bytes) / 2**20
    formula = r"\frac{\text{numbers} \cdot \text{bytes}}{2^{20}}"
    sheet.step(say("memory_stage_mib"), formula, memory, names)
    sheet.numbers(r"\text{scores: } @", memory[1])
    sheet.remark(say("fused_kernel_never"))
    flops = np.array([cost.flops for cost in costs])
    formula = r"2 \cdot \text{batch} \cdot n^2 \cdot d_{\text{model}}\ \text{for scores}"
    sheet.step(say("operations_stage"), formula, flops, names)
    sheet.numbers(r"2 \cdot @ \cdot @^2 \cdot @ = @", batch, length, width, flops[1])
    sheet.remark(say("product_addition_count"))
    sheet.step("Operations altogether", r"\sum", flops.sum())
    sheet.numbers("@", flops.sum())

    twice = sizes.attention_costs(batch, 2 * length, width, heads)
    pairs = zip(costs, twice, strict=True)
    growth = np.array([[b.numbers / a.numbers, b.flops / a.flops] for a, b in pairs])
    title, formula = say("growth_length_doubles"), r"\frac{\text{cost}(2n)}{\text{cost}(n)}"
    sheet.step(title, formula, growth, names, ("numbers", "operations"))
    sheet.numbers(r"\text{scores: } @", growth[1, 1])
    sheet.remark(say("scores_weights_grow"))


@worked(
    "§7",
    say("heads_share_key"),
    say("grouped_query_attention"),
    whole("key_heads", "Key heads", 3, 1, 128),
    whole("group", say("query_heads"), 3, 1, 128),
    whole("width", "Width of a head", 64, 1, 1_024),
    whole("length", "Tokens kept", 1024, 1, 1_000_000),
)
def grouped_queries(sheet: Sheet, key_heads: int, group: int, width: int, length: int) -> None:
    heads = key_heads * group
    shared = np.arange(heads) // group
    formula = r"\left\lfloor \frac{\text{head}}{h / g} \right\rfloor"
    sheet.step(say("key_head_query_head"), formula, shared, "head")
    sheet.numbers(r"h / g = \frac{@}{@} = @", float(heads), float(key_heads), float(group))
    sheet.remark(say("neighbouring_heads_form"))
    kept = 2 * width * np.array([heads, key_heads, 1.0])
    names = ("a key head each", f"{key_heads} key heads", "one for all")
    sheet.step(say("numbers_kept_token"), r"2\,g\,d_k", kept, names)
    sheet.numbers(r"2 \cdot @ \cdot @ = @", float(key_heads), float(width), kept[1])
    sheet.remark(say("keys_values_earlier"))
    sheet.step(say("numbers_kept_tokens"), r"2\,g\,d_k\,n", kept * length, names)
    sheet.numbers(r"@ \cdot @ = @", kept[1], float(length), kept[1] * length)

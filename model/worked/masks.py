"""Masks: padding, look-ahead and their product, in attention; the number written into a masked score (§5)."""

import numpy as np

from model.arithmetic import attention
from model.system.words import Words
from model.worked import latex
from model.worked.example import Array64, Sheet, given, numbered, token_ids, whole, worked
from model.worked.notes import INTRODUCTION

say = Words("worked.masks")

_SEQUENCES = ("first sequence", "second sequence")


def _mask(sheet: Sheet, title: str, formula: str, allowed: Array64) -> None:
    sheet.step(title, formula, allowed, "query", "key", blocked=allowed == 0)
    last = len(allowed) - 1
    sheet.numbers(r"M_{\text{query @}} = @", last, allowed[last])


def _sequence(sheet: Sheet, ids: Array64) -> None:
    sheet.step("Token ids", "t_j", ids, "token", blocked=ids == 0)
    sheet.numbers("@", ids)


def _keys_only(real: Array64) -> Array64:
    return np.tile(real, (len(real), 1))


@worked(
    "§5",
    "The padding mask",
    say("short_sequences_filled"),
    token_ids("ids", say("token_ids_0_padding"), [[1, 2, 3], [4, 5, 0]], _SEQUENCES, "token"),
)
def padding_mask(sheet: Sheet, ids: Array64) -> None:
    sheet.step("Token ids", "t_j", ids, _SEQUENCES, "token", blocked=ids == 0)
    sheet.numbers(r"@,\ @", *ids)
    real, formula = attention.padding_mask(ids), r"m_j = 1\ \text{where token } j \ne 0"
    title = say("padding_mask_sequence")
    sheet.step(title, formula, real, _SEQUENCES, "token", blocked=real == 0)
    sheet.numbers(r"@ \to @", ids[1], real[1])
    both = np.outer(real[1], real[1])
    _mask(sheet, say("second_sequence_queries"), r"M_{ij} = m_i\, m_j", both)
    _mask(sheet, say("second_sequence_keys"), r"M_{ij} = m_j", _keys_only(real[1]))
    sheet.remark(say("implementations_row_left"))


@worked(
    "§5",
    say("look_ahead_mask"),
    say("query_may_attend"),
    whole("length", "Length", 3, 1, 12),
)
def look_ahead_mask(sheet: Sheet, length: int) -> None:
    allowed = attention.causal_mask(length)
    _mask(sheet, "Look-ahead mask", r"M_{ij} = 1\ \text{where } j \le i", allowed)
    sheet.remark(say("model_generates_future"))
    closed, formula = 1.0 - allowed, r"1 - M_{ij} = 1\ \text{where } j > i"
    sheet.step(say("cells_hidden"), formula, closed, "query", "key")
    sheet.numbers(r"\text{query 0: } @", closed[0])
    sheet.remark(say("ones_strictly_above"))
    counts, formula = allowed.sum(axis=1), r"\sum_j M_{ij} = i + 1"
    sheet.step(say("keys_query_may_attend"), formula, counts, "query")
    sheet.numbers(r"\text{query @: } @", length - 1, counts[-1])


@worked(
    "§5",
    say("padding_look_ahead"),
    say("cell_allowed_both"),
    token_ids("ids", say("token_ids_0_padding"), [4, 5, 0]),
)
def combined_mask(sheet: Sheet, ids: Array64) -> None:
    real = attention.padding_mask(ids)
    causal, both = attention.causal_mask(len(ids)), np.outer(real, real)
    _sequence(sheet, ids)
    _mask(sheet, say("padding_mask_queries"), r"M^{\text{pad}}_{ij} = m_i\, m_j", both)
    formula = r"M^{\text{causal}}_{ij} = 1\ \text{where } j \le i"
    _mask(sheet, "Look-ahead mask", formula, causal)
    _mask(sheet, "Their product", r"M^{\text{pad}} \odot M^{\text{causal}}", both * causal)
    formula = r"m_j\, M^{\text{causal}}_{ij}"
    _mask(sheet, say("product_keys_masked"), formula, _keys_only(real) * causal)
    sheet.remark(say("padded_query_keeps"))


@worked(
    "§5",
    say("ways_write_padding"),
    say("padding_mask_may"),
    token_ids("ids", say("token_ids_0_padding"), [1, 2, 3, 0]),
)
def two_padding_masks(sheet: Sheet, ids: Array64) -> None:
    real = attention.padding_mask(ids)
    both, keys_only = np.outer(real, real), _keys_only(real)
    reason = say("notes_use_both_place")
    _sequence(sheet, ids)
    _mask(sheet, say("padding_mask_queries"), r"M_{ij} = m_i\, m_j", both)
    sheet.remark(reason)
    _mask(sheet, say("padding_mask_keys"), r"M_{ij} = m_j", keys_only)
    sheet.remark(reason)
    _mask(sheet, say("differ"), r"m_j - m_i\, m_j", keys_only - both)
    title = say("look_ahead_mask_times")
    product = keys_only * attention.causal_mask(len(ids))
    _mask(sheet, title, r"m_j\, M^{\text{causal}}_{ij}", product)


_TOKENS = ("y1", "y2", "y3", "pad")
_WORDS = ("The", "Cat", "Sat")
_VECTORS = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 1.1, 1.2], [0.0] * 4]


@worked(
    "§5",
    say("four_tokens_padding"),
    say("mask_hides_future"),
    given("vectors", "Inputs (Q = K = V)", _VECTORS, _TOKENS, "dim"),
    whole("real", say("1_real_token_0_padding"), [1, 1, 1, 0], 0, 1, _TOKENS),
    given("mask_value", "Mask value", -1e9, lowest=-1e20, highest=0),
)
def four_by_four_masked(sheet: Sheet, vectors: Array64, real: Array64, mask_value: float) -> None:
    allowed = attention.causal_mask(4) * real
    blocked = allowed == 0
    products = sheet.scores(vectors, vectors, _TOKENS, cell=(1, 1))
    scaled = sheet.scaled(products, 4, _TOKENS, cell=(1, 1))
    title, formula = say("mask_look_ahead"), r"M_{ij} = m_j\ \text{where } j \le i"
    sheet.step(title, formula, allowed, _TOKENS, _TOKENS, blocked=blocked)
    sheet.numbers(r"M_{\text{pad}} = @", allowed[3])
    hidden = sheet.step(
        "Masked scores",
        r"\tilde s_{ij} = s_{ij}\ \text{where } M_{ij} = 1,\quad \text{the mask value where } M_{ij} = 0",
        attention.masked(scaled, allowed, mask_value),
        _TOKENS,
        _TOKENS,
        quantity="score",
        blocked=blocked,
    )
    sheet.numbers(r"\tilde s_{\text{y1}} = @", hidden[0])
    weights = sheet.weights(hidden, _TOKENS, row=2, allowed=allowed)
    sheet.output(weights, vectors, _TOKENS, row=1)
    hidden = attention.masked(products, allowed, mask_value)
    title = say("weights_without_scaling")
    weights = sheet.weights(hidden, _TOKENS, row=2, allowed=allowed, title=title)
    sheet.remark(say("without_division_2"))
    title = say("output_without_scaling")
    sheet.output(weights, vectors, _TOKENS, row=1, title=title)


@worked(
    "§5",
    say("routes_causal_weights"),
    say("write_into_future"),
    given(
        "scores",
        "Scaled scores",
        [[1, 0, 1], [0, 1, 1], [1, 1, 2]],
        _WORDS,
        _WORDS,
        lowest=-30,
        highest=30,
    ),
)
def two_routes_to_causal(sheet: Sheet, scores: Array64) -> None:
    allowed = attention.causal_mask(3)
    blocked = allowed == 0
    hidden = attention.masked(scores, allowed)
    title = say("route_1_future_softmax")
    first = sheet.weights(hidden, _WORDS, row=1, allowed=allowed, title=title)
    title = say("route_2_softmax")
    full = sheet.weights(scores, _WORDS, row=1, title=title)
    zeroed = full * allowed
    title = say("route_2_future_set")
    sheet.step(
        title, r"a_{ij}\, M_{ij}", zeroed, _WORDS, _WORDS, quantity="weight", blocked=blocked
    )
    sheet.numbers(r"\text{Cat: } @", zeroed[1])
    sums = zeroed.sum(axis=1)
    title = say("route_2_left_row")
    sheet.step(title, r"\sum_j a_{ij}\, M_{ij}", sums, _WORDS)
    sheet.numbers(r"\text{Cat: } @ = @", latex.total(zeroed[1]), sums[1])
    again = zeroed / sums[:, None]
    title = say("route_2_row_divided")
    formula = r"\frac{a_{ij}\, M_{ij}}{\sum_m a_{im}\, M_{im}}"
    sheet.step(title, formula, again, _WORDS, _WORDS, quantity="weight", blocked=blocked)
    sheet.numbers(r"\text{Cat: } \frac{@}{@} = @", zeroed[1], sums[1], again[1])
    sheet.difference(first, again, "Route 1 minus route 2", _WORDS, _WORDS)
    sheet.remark(say("sum_over_keys_cancels"))


_WRITTEN = ("−∞ written", "−1e9 written", "−1e20 written", "0 written", "0 added")
_MASK_VALUES = (attention.HIDDEN, -1e9, -1e20, 0.0)


def _masked(scores: Array64, mask: Array64) -> Array64:
    """The scores under each mask value, (mask value, key); the last row adds 0 instead."""
    return np.stack(
        [*(attention.masked(scores, mask, mask_value) for mask_value in _MASK_VALUES), scores]
    )


@worked(
    "§5",
    say("write_into_masked"),
    say("masked_score_must"),
    given("scores", say("scores_last_chosen"), [2.5, 1.3, 0.7, 1.9], "key"),
    whole("mask", "Mask", [1, 1, 0, 0], 0, 1, "key"),
    whole("d_k", "d_k", 4, 1, 512),
)
def fill_values(sheet: Sheet, scores: Array64, mask: Array64, d_k: int) -> None:
    if not mask.any():
        raise ValueError("The mask hides all 4 keys; leave at least 1 of them open.")
    masked = _masked(scores, mask)
    exponentials, weights = np.exp(masked), attention.softmax(masked)
    hidden = (mask == 0) & (exponentials == 0)
    formula = r"e^{-\infty} = 0,\quad e^{-10^9} = 0,\quad e^0 = 1"
    title = say("exponentials_under_mask")
    sheet.step(title, formula, exponentials, _WRITTEN, "key", blocked=hidden)
    sheet.numbers("e^{@} = @", scores[0], np.exp(scores[0]))
    sheet.remark(say("mask_value_0_hides"))

    title, formula = "Weights with −∞", r"a = \mathrm{softmax}(\tilde s)"
    sheet.step(title, formula, weights[0], "key", quantity="weight", blocked=mask == 0)
    sheet.numbers(r"\mathrm{softmax}(@) = @", masked[0], weights[0])
    title = say("weights_under_mask")
    sheet.step(title, formula, weights, _WRITTEN, "key", quantity="weight", blocked=hidden)
    sheet.numbers(r"\text{0 written: } @", latex.softmax(masked[3], weights[3]))
    sheet.remark(say("1_e_9_1_e_20_give"))

    root = np.sqrt(d_k)
    scaled_after = attention.softmax(masked / root)
    masked = _masked(scores / root, mask)
    filled_after = attention.softmax(masked)
    formula = (
        r"\mathrm{softmax}\!\left(\frac{\mathrm{fill}(s)}{\sqrt{d_k}}\right) - "
        r"\mathrm{softmax}\!\left(\mathrm{fill}\!\left(\frac{s}{\sqrt{d_k}}\right)\right)"
    )
    title, differences = say("filled_before_scaling"), scaled_after - filled_after
    sheet.step(title, formula, differences, _WRITTEN, "key")
    sheet.numbers(r"\sqrt{d_k} = @", root)
    sheet.remark(say("order_makes_difference"))

    title = say("weights_filled_after")
    formula = r"a = \mathrm{softmax}\!\left(\mathrm{fill}\!\left(\frac{s}{\sqrt{d_k}}\right)\right)"
    sheet.step(title, formula, filled_after[0], "key", quantity="weight", blocked=mask == 0)
    sheet.numbers(r"\mathrm{softmax}(@) = @", masked[0], filled_after[0])


@worked(
    "§5",
    say("row_every_key_masked_2"),
    say("every_key_masked"),
    given("scores", "Scores", [2.5, 1.3, 0.7], "key"),
    given("mask_value", "Mask value", -1e9, lowest=-1e20, highest=0),
)
def fully_masked_row(sheet: Sheet, scores: Array64, mask_value: float) -> None:
    nothing = np.zeros_like(scores)
    blocked = nothing == 0
    written = attention.masked(scores, nothing, mask_value)
    title, formula = say("every_score_replaced"), r"\tilde s_j = \text{mask value}"
    sheet.step(title, formula, written, "key", quantity="score", blocked=blocked)
    sheet.numbers(r"\tilde s = @", written)

    uniform = attention.softmax(written)
    title = "Weights: a uniform row"
    sheet.step(title, r"\frac{e^{f}}{n\, e^{f}} = \frac{1}{n}", uniform, "key", quantity="weight")
    sheet.numbers(r"\frac{1}{@} = @", len(scores), uniform[0])
    sheet.remark(say("equal_scores_give"))

    added = attention.softmax(scores + mask_value)
    title = say("mask_value_added")
    formula = r"\mathrm{softmax}(s_j + \text{mask value})"
    sheet.step(title, formula, added, "key", quantity="weight")
    sheet.numbers(r"\mathrm{softmax}(@ + @) = @", scores, mask_value, added)
    sheet.remark(say("adding_same_number"))
    hidden = attention.masked(scores, nothing)
    exponentials = np.exp(hidden)
    sheet.step("Exponentials with −∞", r"e^{-\infty} = 0", exponentials, "key", blocked=blocked)
    sheet.numbers(r"e^{-\infty} + e^{-\infty} + \ldots = @", exponentials.sum())
    sheet.remark(say("sum_0_plain_arithmetic"))

    title = say("weights_app_defines")
    formula = r"a_j = 0\ \text{where no key is open}"
    weights = attention.softmax(hidden)
    sheet.step(title, formula, weights, "key", quantity="weight", blocked=blocked)
    sheet.numbers(r"a = 0\ \text{instead of}\ \tfrac{0}{0}")
    sheet.remark(say("row_every_key_masked"))


_DECODER = INTRODUCTION.at("Decoder in transformers")
_NUMBERED = numbered("token", 3, start=1)
_EMBEDDING = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]]
_Q_MATRIX = [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]]


@worked(
    "§5",
    say("query_product_not"),
    say("embedding_multiplied_w"),
    given("embedding", "Embeddings (chosen here)", _EMBEDDING, _NUMBERED, "dim"),
    given("q_matrix", "W_Q (chosen here)", _Q_MATRIX, "dim", "dim"),
)
def projection_is_a_product(sheet: Sheet, embedding: Array64, q_matrix: Array64) -> None:
    query = sheet.project(embedding, q_matrix, "Q", _NUMBERED, "E")
    sheet.remark(say("projection_product_matrices"))
    added = embedding + q_matrix
    sheet.step(say("plus_sign_give"), r"E + W_Q", added, _NUMBERED, "dim")
    sheet.numbers("@ + @ = @", embedding[0], q_matrix[0], added[0])
    sheet.remark(say("sum_needs_many_tokens", decoder=_DECODER))
    sheet.difference(query, added, "Product minus sum", _NUMBERED, "dim")


@worked(
    "§5",
    say("padding_target_source"),
    say("target_may_padded"),
    token_ids("target", "Target ids", [1, 2, 3]),
    token_ids("source", "Source ids", [4, 5, 6, 7]),
)
def padding_to_the_source(sheet: Sheet, target: Array64, source: Array64) -> None:
    padded = np.concatenate([target, np.zeros(max(len(source) - len(target), 0))])
    title, formula = say("target_filled_up"), r"y \to [y,\ 0,\ \ldots]"
    sheet.step(title, formula, padded, "token")
    sheet.numbers(r"@ \to @", target, padded)
    sheet.remark(say("padding_makes_sequences"))
    mask, formula = attention.padding_mask(padded), r"m_j = 1\ \text{where token } j \ne 0"
    sheet.step("Its padding mask", formula, mask, "token", blocked=padded == 0)
    sheet.numbers(r"@ \to @", padded, mask)
    tables = [(len(target), len(source)), (len(padded), len(source))]
    title = say("size_cross_attention")
    formula = r"(\text{target tokens}) \times (\text{source tokens})"
    sheet.step(title, formula, tables, ("not padded", "padded"), ("queries", "keys"))
    sheet.numbers(r"@\ \text{and}\ @", *map(latex.shape, tables))
    sheet.remark(say("queries_keys_may"))
    sheet.step("The source", "x", source, "token")
    sheet.numbers("x = @", source)

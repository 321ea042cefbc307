"""Self-attention in four steps, the four multi-head classes of the notes, and what each choice gives (§6)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from model.arithmetic import attention, feed_forward, learning, sizes
from model.system.words import Words
from model.worked import latex
from model.worked.example import (
    Array64,
    Input,
    Sheet,
    given,
    numbered,
    whole,
    without_rounding,
    worked,
)
from model.worked.layers import seeded
from model.worked.notes import GPT, MATRICES, PAPER, TWO_LAYERS

say = Words("worked.ladder")

TOKENS = numbered("token", 3)
_CHAPTER = GPT.at("Chapter 3")
_X = [[0.4, 0.1, 0.8, 0.3], [0.5, 0.9, 0.1, 0.6], [0.2, 0.7, 0.6, 0.9]]
_NARROW = {
    "Q": [[0.5, -0.2], [0.1, 0.8], [-0.3, 0.4], [0.7, 0.2]],
    "K": [[0.3, 0.6], [-0.4, 0.2], [0.8, 0.1], [0.2, -0.5]],
    "V": [[0.2, 0.7, -0.1], [0.6, -0.3, 0.4], [-0.5, 0.1, 0.9], [0.3, 0.5, 0.2]],
}
_SQUARE = {
    "Q": [[0.5, -0.2, 0.3, 0.1], [0.1, 0.8, -0.4, 0.2], [-0.3, 0.4, 0.6, 0.5], [0.7, 0.2, 0.1, -0.6]],
    "K": [[0.3, 0.6, -0.1, 0.4], [-0.4, 0.2, 0.5, 0.3], [0.8, 0.1, 0.2, -0.2], [0.2, -0.5, 0.7, 0.6]],
    "V": [[0.2, 0.7, -0.1, 0.5], [0.6, -0.3, 0.4, 0.1], [-0.5, 0.1, 0.9, 0.2], [0.3, 0.5, 0.2, -0.4]],
    "O": [[0.4, -0.1, 0.2, 0.6], [0.1, 0.5, -0.3, 0.2], [0.7, 0.2, 0.3, -0.5], [-0.2, 0.6, 0.8, 0.1]],
}  # fmt: skip

VECTORS = given("x", say("token_vectors_x"), _X, TOKENS, "dim")


def _matrix(letter: str, values: ArrayLike) -> Input:
    return given(f"{letter.lower()}_matrix", f"W_{letter} (chosen here)", values, "dim", "dim")


_NARROW_MATRICES = tuple(_matrix(letter, values) for letter, values in _NARROW.items())

Q_MATRIX, *_ = SQUARE_MATRICES = tuple(
    _matrix(letter, values) for letter, values in _SQUARE.items()
)


def _shapes(sheet: Sheet, arrays: dict[str, Array64]) -> None:
    shapes = [array.shape for array in arrays.values()]
    formula = r"(\text{rows}) \times (\text{columns})"
    sheet.step("Shapes", formula, shapes, tuple(arrays), ("rows", "columns"))
    named = zip(arrays, map(latex.shape, shapes), strict=True)
    listed = (f"{name.replace('Ω', chr(92) + 'Omega')}: {shape}" for name, shape in named)
    sheet.numbers(r",\quad ".join(listed))


@worked(
    "§6",
    say("variant_1_attention"),
    say("tokens_compared_other"),
    VECTORS,
)
def ladder_without_weights(sheet: Sheet, x: Array64) -> None:
    scores = sheet.scores(x, x, TOKENS, title="Scores Ω", formula=r"\Omega = X X^\top")
    formula = r"A = \mathrm{softmax}(\Omega)\ \text{row by row}"
    weights = sheet.weights(scores, TOKENS, formula=formula)
    output = sheet.output(weights, x, TOKENS, formula=r"Z = A X")
    _shapes(sheet, {"X": x, "A": weights, "Z": output})
    sheet.remark(say("only_x_fits_many", chapter=_CHAPTER))


@worked(
    "§6",
    say("variant_2_attention"),
    say("three_learned_matrices"),
    VECTORS,
    *_NARROW_MATRICES,
)
def ladder_with_weights(
    sheet: Sheet, x: Array64, q_matrix: Array64, k_matrix: Array64, v_matrix: Array64
) -> None:
    query = sheet.project(x, q_matrix, "Q", TOKENS)
    key = sheet.project(x, k_matrix, "K", TOKENS)
    value = sheet.project(x, v_matrix, "V", TOKENS)
    scores = sheet.scores(query, key, TOKENS, title="Scores Ω", formula=r"\Omega = Q K^\top")
    scaled = sheet.scaled(scores, 2, TOKENS, formula=r"\frac{\Omega}{\sqrt{d_k}}")
    weights = sheet.weights(scaled, TOKENS)
    output = sheet.output(weights, value, TOKENS)
    matrices = {"X": x, "W_Q": q_matrix, "W_K": k_matrix, "W_V": v_matrix}
    results = {"Q": query, "K": key, "V": value, "Ω": scores, "A": weights, "Z": output}
    _shapes(sheet, matrices | results)
    sheet.remark(say("w_q_k_n_n_z_v_n", chapter=_CHAPTER))


@worked(
    "§6",
    say("variant_3_causal"),
    say("future_hidden_training"),
    VECTORS,
    *_NARROW_MATRICES,
    *seeded(0.1, 4),
)
def ladder_causal_dropout(
    sheet: Sheet,
    x: Array64,
    q_matrix: Array64,
    k_matrix: Array64,
    v_matrix: Array64,
    rate: float,
    seed: int,
) -> None:
    value, allowed = x @ v_matrix, attention.causal_mask(len(x))
    run = attention.attend(x @ q_matrix, x @ k_matrix, value, allowed=allowed)
    hidden = attention.masked(run.scaled, allowed)
    title = "Causal weights"
    weights = sheet.weights(hidden, TOKENS, row=2, allowed=allowed, title=title)
    draws = np.random.default_rng(seed).random(weights.shape)
    formula = r"u_{ij} \sim \mathrm{uniform}(0, 1)"
    sheet.step("Random numbers drawn", formula, draws, TOKENS, TOKENS)
    sheet.numbers(r"\text{seed } @", str(seed))
    keep, formula = feed_forward.kept(draws, rate), r"k_{ij} = 1\ \text{where } u_{ij} \ge p"
    sheet.step("Kept by dropout", formula, keep, TOKENS, TOKENS)
    sheet.numbers("p = @", rate)
    after = feed_forward.dropped(weights, keep, rate)
    title, formula = "Weights in training", r"\frac{k_{ij}\, a_{ij}}{1 - p}"
    sheet.step(title, formula, after, TOKENS, TOKENS, quantity="weight", blocked=allowed == 0)
    sheet.numbers(r"\frac{@}{1 - @} = @", keep[2] * weights[2], rate, after[2])
    sums, formula = after.sum(axis=1), r"\sum_j \frac{k_{ij}\, a_{ij}}{1 - p}"
    sheet.step("Their row sums", formula, sums, TOKENS)
    sheet.numbers("@ = @", latex.total(after[2]), sums[2])
    sheet.remark(say("dropout_rows_longer"))
    sheet.output(after, value, TOKENS, title="Output in training")
    sheet.output(weights, value, TOKENS, title="Output in evaluation")
    sheet.remark(say("dropout_off_outside"))


@worked(
    "§6",
    say("variant_4_several"),
    say("head_attends_own"),
    VECTORS,
    *SQUARE_MATRICES,
)
def ladder_multi_head(
    sheet: Sheet,
    x: Array64,
    q_matrix: Array64,
    k_matrix: Array64,
    v_matrix: Array64,
    o_matrix: Array64,
) -> None:
    heads, outputs = 2, []
    by_head = [
        attention.split_heads(x @ matrix, heads) for matrix in (q_matrix, k_matrix, v_matrix)
    ]
    for head, (query, key, value) in enumerate(zip(*by_head, strict=True)):
        run = attention.attend(query, key, value)
        weights = sheet.weights(run.scaled, TOKENS, title=f"Weights of head {head}")
        outputs.append(sheet.output(weights, value, TOKENS, title=f"Output of head {head}"))
    context, formula = np.concatenate(outputs, axis=1), r"[\,z^{(0)},\ z^{(1)}\,]"
    sheet.step(say("heads_side_side"), formula, context, TOKENS, "dim", quantity="output")
    sheet.numbers(r"@,\ @ \to @", outputs[0][0], outputs[1][0], context[0])
    sheet.remark(
        say("head_model_h_4_wide", heads=heads, shape=outputs[0].shape[1], context=context.shape[1])
    )
    output, formula = context @ o_matrix, r"[\,z^{(0)},\ z^{(1)}\,]\, W_O"
    sheet.step("Mixed by W_O", formula, output, TOKENS, "dim", quantity="output")
    sheet.numbers(r"@\,W_O = @", context[0], output[0])


class Projections(NamedTuple):
    """Four matrices, each (d_model, d_model), and one bias used after each of them, (d_model,)."""

    query: Array64
    key: Array64
    value: Array64
    output: Array64
    bias: Array64


def by_einsum(x: Array64, weights: Projections, heads: int, allowed: Array64) -> Array64:
    """Class (a): einsum "nqhd,nkhd->nhqk", −1e20 written before the scaling, no biases."""
    length, width = x.shape
    split = (1, length, heads, width // heads)
    query, key, value = ((x @ matrix).reshape(split) for matrix in weights[:3])
    energy = np.einsum("nqhd,nkhd->nhqk", query, key)
    energy = np.where(allowed == 0, -1e20, energy)
    share = attention.softmax(energy / math.sqrt(width // heads))
    context = np.einsum("nhql,nlhd->nqhd", share, value).reshape(length, width)
    return context @ weights.output


def by_single_heads(x: Array64, weights: Projections, heads: int, allowed: Array64) -> Array64:
    """Class (b): one small self-attention for each head, on its own columns, without biases; then W_O."""
    width = x.shape[1] // heads
    outputs = []
    for head in range(heads):
        columns = slice(head * width, (head + 1) * width)
        query, key, value = (x @ matrix[:, columns] for matrix in weights[:3])
        outputs.append(attention.attend(query, key, value, allowed=allowed).output)
    return np.concatenate(outputs, axis=1) @ weights.output


def by_batched_products(
    x: Array64, weights: Projections, heads: int, allowed: Array64, mask_value: float
) -> Array64:
    """Classes (c) with −1e9 and (d) with −∞: heads as an axis, the mask value after scaling, biases."""
    query, key, value = (
        attention.split_heads(x @ matrix + weights.bias, heads) for matrix in weights[:3]
    )
    run = attention.attend(query, key, value, allowed=allowed, mask_value=mask_value)
    return attention.merge_heads(run.output) @ weights.output + weights.bias


_LETTERS = ("(a)", "(b)", "(c)", "(d)")


@worked(
    "§6",
    say("four_multi_head"),
    say("multi_head_attention"),
    VECTORS,
    *SQUARE_MATRICES,
    given("bias", say("bias_projections_c"), np.zeros(4), "dim"),
    whole("heads", "Heads", 2, 1, 4),
)
def four_classes_agree(
    sheet: Sheet,
    x: Array64,
    q_matrix: Array64,
    k_matrix: Array64,
    v_matrix: Array64,
    o_matrix: Array64,
    bias: Array64,
    heads: int,
) -> None:
    sizes.head_width(x.shape[1], heads)
    weights = Projections(q_matrix, k_matrix, v_matrix, o_matrix, bias)
    allowed = attention.causal_mask(len(x))
    classes = {
        say("einsum_1_e_20_before"): (
            by_einsum(x, weights, heads, allowed),
            MATRICES.at("class SelfAttention"),
        ),
        say("b_small_class_per"): (
            by_single_heads(x, weights, heads, allowed),
            GPT.at("class SelfAttention_v2"),
        ),
        "(c) batched products, -1e9, biases": (
            by_batched_products(x, weights, heads, allowed, -1e9),
            PAPER.at("class MultiHeadAttention"),
        ),
        say("batched_products_dropout"): (
            by_batched_products(x, weights, heads, allowed, attention.HIDDEN),
            TWO_LAYERS.at("class MultiHeadAttention"),
        ),
    }
    for name, (output, source) in classes.items():
        formula = r"\mathrm{concat}(z^{(0)}, \ldots)\, W_O"
        sheet.step(f"Output of class {name}", formula, output, TOKENS, "dim", quantity="output")
        sheet.numbers(r"\text{token 0: } @", output[0])
        sheet.remark(f"As in {source}.")
    outputs = [output for output, _ in classes.values()]
    between = np.array([[np.abs(one - other).max() for other in outputs] for one in outputs])
    title = say("largest_difference_between")
    formula = r"\max |z^{(\text{one})} - z^{(\text{other})}|"
    sheet.step(title, formula, without_rounding(between, *outputs), _LETTERS, _LETTERS)
    sheet.numbers(r"\max = @", sheet.steps[-1].result.max())
    sheet.remark(say("same_weights_zero"))


@worked(
    "§6",
    say("why_w_q_w_k_separate"),
    say("matrix_both_pair"),
    VECTORS,
    *SQUARE_MATRICES[:2],
)
def separate_queries_and_keys(
    sheet: Sheet, x: Array64, q_matrix: Array64, k_matrix: Array64
) -> None:
    query = sheet.project(x, q_matrix, "Q", TOKENS)
    key = sheet.project(x, k_matrix, "K", TOKENS)
    two = sheet.scores(query, key, TOKENS, title=say("scores_matrices"))
    formula = r"S - S^\top"
    sheet.step(say("scores_minus_transpose"), formula, two - two.T, TOKENS, TOKENS)
    sheet.numbers("@ - @ = @", two[0, 1], two[1, 0], two[0, 1] - two[1, 0])
    sheet.remark(say("token_0_may_attend"))
    formula = r"S = Q Q^\top"
    one = sheet.scores(
        query, query, TOKENS, title=say("scores_w_q_both"), formula=formula, cell=(0, 1)
    )
    sheet.difference(one, one.T, say("scores_minus_transpose_again"), TOKENS, TOKENS)
    sheet.remark(say("always_0_pair_tokens"))


@worked(
    "§6",
    say("why_several_heads"),
    say("head_row_weights"),
    VECTORS,
    *SQUARE_MATRICES,
)
def one_head_or_two(
    sheet: Sheet,
    x: Array64,
    q_matrix: Array64,
    k_matrix: Array64,
    v_matrix: Array64,
    o_matrix: Array64,
) -> None:
    results = []
    for heads, count in ((1, "One head"), (2, "Two heads")):
        parts = [attention.split_heads(x @ each, heads) for each in (q_matrix, k_matrix, v_matrix)]
        runs = [attention.attend(*part) for part in zip(*parts, strict=True)]
        for head, run in enumerate(runs):
            which = f": weights of head {head}" if heads > 1 else ": weights"
            sheet.weights(run.scaled, TOKENS, title=count + which, row=2)
        merged = attention.merge_heads(np.stack([run.output for run in runs]))
        title = f"{count}: output through W_O"
        formula = r"Z\,W_O" if heads == 1 else r"[\,z^{(0)},\ z^{(1)}\,]\, W_O"
        sheet.step(title, formula, merged @ o_matrix, TOKENS, "dim", quantity="output")
        sheet.numbers(r"@\,W_O = @", merged[2], merged[2] @ o_matrix)
        results.append(merged @ o_matrix)
    sheet.difference(results[0], results[1], say("head_minus"), TOKENS, "dim")
    sheet.remark(say("heads_read_places"))
    parameters = sizes.projection_parameters(len(x[0]))
    sheet.step("Parameters", r"4\,d^2", [parameters] * 2, ("one head", "two heads"))
    sheet.numbers(r"4 \cdot @ \cdot @ = @", float(len(x[0])), float(len(x[0])), parameters)
    sheet.remark(say("heads_share_width"))


@worked(
    "§6",
    say("w_q_learns_loss"),
    say("say_token_should"),
    given("token", say("vector_token"), [1.0, 0.5], "dim"),
    given("keys", "Keys", [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], "key", "dim"),
    given("matrix", "W_Q", [[0.6, 0.2], [0.1, 0.4]], "dim", "dim"),
    whole("target", say("key_should_read"), 2, 0, 2),
    given("rate", "Learning rate η", 0.5, lowest=0, highest=10),
)
def how_w_q_learns(
    sheet: Sheet, token: Array64, keys: Array64, matrix: Array64, target: int, rate: float
) -> None:
    names, root = numbered("key", len(keys)), np.sqrt(len(token))

    def weights_by(changed: Array64) -> Array64:
        return attention.softmax(keys @ (token @ changed) / root)

    query = sheet.step("Query", r"q = x\, W_Q", token @ matrix, "dim", quantity="query")
    sheet.numbers("q_0 = @ = @", latex.dot(token, matrix[:, 0]), query[0])
    scaled, formula = keys @ query / root, r"s_j = \frac{q \cdot k_j}{\sqrt{d_k}}"
    sheet.step("Scaled scores", formula, scaled, names, quantity="score")
    sheet.numbers(r"s_0 = \frac{@}{\sqrt{@}} = @", latex.dot(query, keys[0]), len(token), scaled[0])
    weights = weights_by(matrix)
    formula = r"a_j = \frac{e^{s_j}}{\sum_m e^{s_m}}"
    sheet.step("Weights", formula, weights, names, quantity="weight")
    sheet.numbers(latex.softmax(scaled, weights))
    loss = sheet.step("Loss", r"L = -\ln a_t", -np.log(weights[target]))
    sheet.numbers(r"-\ln @ = @", weights[target], loss)
    wanted = learning.one_hot(np.array([target]), len(keys))[0]
    formula, for_scores = r"\frac{\partial L}{\partial s_j} = a_j - y_j", weights - wanted
    sheet.step(say("gradient_scores"), formula, for_scores, names)
    sheet.numbers("@ - @", weights, wanted)
    sheet.remark(say("step_against_raises"))
    formula = r"\frac{\partial L}{\partial q} = \sum_j \frac{\partial L}{\partial s_j} \frac{k_j}{\sqrt{d_k}}"
    for_query = sheet.step(say("gradient_query"), formula, for_scores @ keys / root, "dim")
    line = r"\frac{@}{\sqrt{@}} = @"
    sheet.numbers(line, latex.dot(for_scores, keys[:, 0]), len(token), for_query[0])
    formula = r"\frac{\partial L}{\partial W_Q} = x^\top\, \frac{\partial L}{\partial q}"
    gradient = sheet.step("Gradient for W_Q", formula, np.outer(token, for_query), "dim", "dim")
    sheet.numbers(r"@ \cdot @ = @", token[0], for_query[0], gradient[0, 0])
    sheet.remark(say("w_k_w_v_get_theirs"))
    changed = matrix - rate * gradient
    formula, title = (
        r"W_Q \leftarrow W_Q - \eta\,\frac{\partial L}{\partial W_Q}",
        "W_Q after one step",
    )
    sheet.step(title, formula, changed, "dim", "dim")
    sheet.numbers(r"@ - @ \cdot @ = @", matrix[0, 0], rate, gradient[0, 0], changed[0, 0])
    formula, after = r"L\ \text{before and after}", -np.log(weights_by(changed)[target])
    sheet.step(say("loss_after_step"), formula, (loss, after), ("before", "after"))
    sheet.numbers(r"@ \to @", loss, after)

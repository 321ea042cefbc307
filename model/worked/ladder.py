"""Self-attention in four steps: without weights, with weights, causal with dropout, multi-head."""

import numpy as np
from numpy.typing import ArrayLike

from model.arithmetic import activations, attention
from model.worked import latex
from model.worked.example import Array, Input, Sheet, given, numbered, worked
from model.worked.feed_forward import seeded
from model.worked.source import GPT

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
VECTORS = given("x", "Token vectors X (chosen here)", _X, TOKENS, "dim")


def _matrix(letter: str, values: ArrayLike) -> Input:
    return given(f"{letter.lower()}_matrix", f"W_{letter} (chosen here)", values, "dim", "dim")


_NARROW_MATRICES = tuple(_matrix(letter, values) for letter, values in _NARROW.items())
Q_MATRIX, *_ = SQUARE_MATRICES = tuple(
    _matrix(letter, values) for letter, values in _SQUARE.items()
)


def _shapes(sheet: Sheet, arrays: dict[str, Array]) -> None:
    shapes = [array.shape for array in arrays.values()]
    formula = r"(\text{rows}) \times (\text{columns})"
    sheet.step("Shapes", formula, shapes, tuple(arrays), ("rows", "columns"))
    named = zip(arrays, map(latex.shape, shapes), strict=True)
    listed = (f"{name.replace('Ω', chr(92) + 'Omega')}: {shape}" for name, shape in named)
    sheet.numbers(r",\quad ".join(listed))


@worked(
    "§6",
    "Variant 1: attention without weights",
    "Tokens are compared with each other as they are. Nothing is learned yet.",
    VECTORS,
)
def ladder_without_weights(sheet: Sheet, x: Array) -> None:
    scores = sheet.scores(x, x, TOKENS, title="Scores Ω", formula=r"\Omega = X X^\top")
    formula = r"A = \mathrm{softmax}(\Omega)\ \text{row by row}"
    weights = sheet.weights(scores, TOKENS, formula=formula)
    output = sheet.output(weights, x, TOKENS, formula=r"Z = A X")
    _shapes(sheet, {"X": x, "A": weights, "Z": output})
    sheet.remark(
        "Only A·X fits: A has as many columns as X has rows. "
        f"Xᵀ has another number of rows. ({_CHAPTER} has A·Xᵀ.)"
    )


@worked(
    "§6",
    "Variant 2: attention with W_Q, W_K and W_V",
    "Three learned matrices, shared by all tokens, turn each vector into a query, "
    "a key and a value.",
    VECTORS,
    *_NARROW_MATRICES,
)
def ladder_with_weights(
    sheet: Sheet, x: Array, q_matrix: Array, k_matrix: Array, v_matrix: Array
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
    sheet.remark(
        f"W_Q is d_in × d_k, Ω is N × N, and Z = A·V is N × d_v. ({_CHAPTER} has N × d_k for W_Q.)"
    )


@worked(
    "§6",
    "Variant 3: causal attention with dropout",
    "The future is hidden, and in training some weights are set to 0 at random.",
    VECTORS,
    *_NARROW_MATRICES,
    *seeded(0.1, 4),
)
def ladder_causal_dropout(
    sheet: Sheet,
    x: Array,
    q_matrix: Array,
    k_matrix: Array,
    v_matrix: Array,
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
    keep, formula = activations.kept(draws, rate), r"k_{ij} = 1\ \text{where } u_{ij} \ge p"
    sheet.step("Kept by dropout", formula, keep, TOKENS, TOKENS)
    sheet.numbers("p = @", rate)
    after = activations.dropped(weights, keep, rate)
    title, formula = "Weights in training", r"\frac{k_{ij}\, a_{ij}}{1 - p}"
    sheet.step(title, formula, after, TOKENS, TOKENS, quantity="weight", blocked=allowed == 0)
    sheet.numbers(r"\frac{@}{1 - @} = @", keep[2] * weights[2], rate, after[2])
    sums, formula = after.sum(axis=1), r"\sum_j \frac{k_{ij}\, a_{ij}}{1 - p}"
    sheet.step("Their row sums", formula, sums, TOKENS)
    sheet.numbers("@ = @", latex.total(after[2]), sums[2])
    sheet.remark("With dropout the rows no longer sum to 1; they do on average.")
    sheet.output(after, value, TOKENS, title="Output in training")
    sheet.output(weights, value, TOKENS, title="Output in evaluation")
    sheet.remark("Dropout is off outside training.")


@worked(
    "§6",
    "Variant 4: several heads at once",
    "Each head attends in its own slice of the width; the outputs are concatenated and mixed by "
    "W_O.",
    VECTORS,
    *SQUARE_MATRICES,
)
def ladder_multi_head(
    sheet: Sheet, x: Array, q_matrix: Array, k_matrix: Array, v_matrix: Array, o_matrix: Array
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
    sheet.step("Heads side by side", formula, context, TOKENS, "dim", quantity="output")
    sheet.numbers(r"@,\ @ \to @", outputs[0][0], outputs[1][0], context[0])
    sheet.remark(
        f"Each head is d_model/h = 4/{heads} = {outputs[0].shape[1]} wide; "
        f"side by side they are {context.shape[1]} wide again."
    )
    output, formula = context @ o_matrix, r"[\,z^{(0)},\ z^{(1)}\,]\, W_O"
    sheet.step("Mixed by W_O", formula, output, TOKENS, "dim", quantity="output")
    sheet.numbers(r"@\,W_O = @", context[0], output[0])

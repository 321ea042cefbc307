"""The ladder of self-attention: without weights, with weights, causal with dropout, multi-head."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.arithmetic import activations, attention
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Array, Input, Step, Values, given, numbered, worked
from model.worked.feed_forward import seeded
from model.worked.source import GPT

TOKENS = numbered("token", 3)
_CHAPTER = GPT.at("Chapter 3")
_WIDTH = numbered("dim", 4)
_X = [[0.4, 0.1, 0.8, 0.3], [0.5, 0.9, 0.1, 0.6], [0.2, 0.7, 0.6, 0.9]]
_W_Q = [[0.5, -0.2], [0.1, 0.8], [-0.3, 0.4], [0.7, 0.2]]
_W_K = [[0.3, 0.6], [-0.4, 0.2], [0.8, 0.1], [0.2, -0.5]]
_W_V = [[0.2, 0.7, -0.1], [0.6, -0.3, 0.4], [-0.5, 0.1, 0.9], [0.3, 0.5, 0.2]]
SQUARE = {
    "q_matrix": [[0.5, -0.2, 0.3, 0.1], [0.1, 0.8, -0.4, 0.2], [-0.3, 0.4, 0.6, 0.5],
                 [0.7, 0.2, 0.1, -0.6]],
    "k_matrix": [[0.3, 0.6, -0.1, 0.4], [-0.4, 0.2, 0.5, 0.3], [0.8, 0.1, 0.2, -0.2],
                 [0.2, -0.5, 0.7, 0.6]],
    "v_matrix": [[0.2, 0.7, -0.1, 0.5], [0.6, -0.3, 0.4, 0.1], [-0.5, 0.1, 0.9, 0.2],
                 [0.3, 0.5, 0.2, -0.4]],
    "o_matrix": [[0.4, -0.1, 0.2, 0.6], [0.1, 0.5, -0.3, 0.2], [0.7, 0.2, 0.3, -0.5],
                 [-0.2, 0.6, 0.8, 0.1]],
}  # fmt: skip


def _shapes(title: str, names: tuple[str, ...], arrays: tuple[Array, ...], comment: str) -> Step:
    result = np.array([array.shape for array in arrays], dtype=np.float64)
    listed = r",\quad ".join(
        rf"{name.replace('Ω', chr(92) + 'Omega')}: {latex.shape(array.shape)}"
        for name, array in zip(names, arrays, strict=True)
    )
    return Step(
        title,
        r"(\text{rows}) \times (\text{columns})",
        result,
        listed,
        names,
        ("rows", "columns"),
        comment=comment,
    )


def _matrix(name: str, values: list[list[float]]) -> Input:
    value = np.array(values)
    label = f"W_{name[0].upper()} (chosen here)"
    return given(name, label, value, _WIDTH, "dim")


def vectors(label: str = "Token vectors X (chosen here)") -> Input:
    """Three token vectors of width four, chosen for these examples."""
    return given("x", label, _X, TOKENS, _WIDTH)


def square_matrices(names: str = "qkvo") -> tuple[Input, ...]:
    """W_Q, W_K, W_V and W_O, four by four, chosen for these examples."""
    return tuple(_matrix(f"{name}_matrix", SQUARE[f"{name}_matrix"]) for name in names)


@worked(
    "ladder-without-weights",
    "§6",
    "Variant 1: attention without weights",
    "Tokens are compared with each other as they are. Nothing is learned yet.",
    vectors(),
)
def _without_weights(values: Values) -> tuple[Step, ...]:
    x = values["x"]
    score = steps.score(x, x, TOKENS, TOKENS)
    weights = steps.weigh(score.result, TOKENS, TOKENS)
    output = steps.sum_up(weights.result, x, TOKENS)
    return (
        replace(score, title="Scores Ω", formula=r"\Omega = X X^\top"),
        replace(weights, formula=r"A = \mathrm{softmax}(\Omega)\ \text{row by row}"),
        replace(output, formula=r"Z = A X"),
        _shapes(
            "Shapes",
            ("X", "A", "Z"),
            (x, weights.result, output.result),
            "Only A·X fits: A has as many columns as X has rows. "
            f"Xᵀ has another number of rows. ({_CHAPTER} has A·Xᵀ.)",
        ),
    )


@worked(
    "ladder-with-weights",
    "§6",
    "Variant 2: attention with W_Q, W_K and W_V",
    "Three learned matrices, shared by all tokens, turn each vector into a query, "
    "a key and a value.",
    vectors(),
    _matrix("q_matrix", _W_Q),
    _matrix("k_matrix", _W_K),
    _matrix("v_matrix", _W_V),
)
def _with_weights(values: Values) -> tuple[Step, ...]:
    x = values["x"]
    query = steps.project(x, values["q_matrix"], "Q", TOKENS)
    key = steps.project(x, values["k_matrix"], "K", TOKENS)
    value = steps.project(x, values["v_matrix"], "V", TOKENS)
    score = steps.score(query.result, key.result, TOKENS, TOKENS)
    scaled = steps.scale(score.result, 2, TOKENS, TOKENS)
    weights = steps.weigh(scaled.result, TOKENS, TOKENS)
    output = steps.sum_up(weights.result, value.result, TOKENS)
    return (
        query,
        key,
        value,
        replace(score, title="Scores Ω", formula=r"\Omega = Q K^\top"),
        replace(scaled, formula=r"\frac{\Omega}{\sqrt{d_k}}"),
        weights,
        output,
        _shapes(
            "Shapes",
            ("X", "W_Q", "W_K", "W_V", "Q", "K", "V", "Ω", "A", "Z"),
            (x, values["q_matrix"], values["k_matrix"], values["v_matrix"], query.result,
             key.result, value.result, score.result, weights.result, output.result),
            "W_Q is d_in × d_k, Ω is N × N, and Z = A·V is N × d_v. "
            f"({_CHAPTER} has N × d_k for W_Q.)",
        ),
    )  # fmt: skip


@worked(
    "ladder-causal-dropout",
    "§6",
    "Variant 3: causal attention with dropout",
    "The future is hidden, and in training some weights are set to 0 at random.",
    vectors(),
    _matrix("q_matrix", _W_Q),
    _matrix("k_matrix", _W_K),
    _matrix("v_matrix", _W_V),
    *seeded(0.1, 4),
)
def _causal_dropout(values: Values) -> tuple[Step, ...]:
    x, rate = values["x"], float(values["rate"])
    allowed = attention.causal_mask(len(x))
    run = attention.attend(
        x @ values["q_matrix"], x @ values["k_matrix"], x @ values["v_matrix"], allowed=allowed
    )
    value = x @ values["v_matrix"]
    weights = steps.weigh(
        attention.masked(run.scaled, allowed), TOKENS, TOKENS, row=2, allowed=allowed
    )
    draws = np.random.default_rng(int(values["seed"])).random(weights.result.shape)
    keep = activations.kept(draws, rate)
    after = activations.dropped(weights.result, keep, rate)
    sums = after.sum(axis=1)
    return (
        replace(weights, title="Causal weights"),
        Step("Random numbers drawn", r"u_{ij} \sim \mathrm{uniform}(0, 1)", draws,
             rf"\text{{seed }} {int(values['seed'])}", TOKENS, TOKENS),
        Step("Kept by dropout", r"k_{ij} = 1\ \text{where } u_{ij} \ge p", keep,
             rf"p = {latex.number(rate)}", TOKENS, TOKENS),
        Step("Weights in training", r"\frac{k_{ij}\, a_{ij}}{1 - p}", after,
             rf"\frac{{{latex.row(keep[2] * weights.result[2])}}}{{1 - {latex.number(rate)}}} = "
             rf"{latex.row(after[2])}", TOKENS, TOKENS, "weight", blocked=allowed == 0),
        Step("Their row sums", r"\sum_j \frac{k_{ij}\, a_{ij}}{1 - p}", sums,
             rf"{latex.total(after[2])} = {latex.number(sums[2])}", columns=TOKENS,
             comment="With dropout the rows no longer sum to 1; they do on average."),
        replace(steps.sum_up(after, value, TOKENS), title="Output in training"),
        replace(steps.sum_up(weights.result, value, TOKENS), title="Output in evaluation",
                comment="Dropout is off outside training."),
    )  # fmt: skip


@worked(
    "ladder-multi-head",
    "§6",
    "Variant 4: several heads at once",
    "Each head attends on its own slice of the width; the slices are laid side by side "
    "and mixed by W_O.",
    vectors(),
    *square_matrices(),
)
def _multi_head(values: Values) -> tuple[Step, ...]:
    x, heads = values["x"], 2
    by_head = [
        attention.split_heads(x @ values[name], heads)
        for name in ("q_matrix", "k_matrix", "v_matrix")
    ]
    runs = [attention.attend(*(part[head] for part in by_head)) for head in range(heads)]
    context = np.concatenate([run.output for run in runs], axis=1)
    output = context @ values["o_matrix"]
    per_head = (
        step
        for head, run in enumerate(runs)
        for step in (
            replace(steps.weigh(run.scaled, TOKENS, TOKENS), title=f"Weights of head {head}"),
            replace(
                steps.sum_up(run.weights, by_head[2][head], TOKENS), title=f"Output of head {head}"
            ),
        )
    )
    return (
        *per_head,
        Step("Heads side by side", r"[\,z^{(0)},\ z^{(1)}\,]", context,
             rf"{latex.row(runs[0].output[0])},\ {latex.row(runs[1].output[0])} \to "
             rf"{latex.row(context[0])}", TOKENS, _WIDTH, "output",
             comment=f"Each head is d_model/h = 4/{heads} = {len(runs[0].output[0])} wide; "
             f"side by side they are {context.shape[1]} wide again."),
        Step("Mixed by W_O", r"[\,z^{(0)},\ z^{(1)}\,]\, W_O", output,
             rf"{latex.row(context[0])}\,W_O = {latex.row(output[0])}", TOKENS, _WIDTH, "output"),
    )  # fmt: skip

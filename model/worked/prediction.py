"""From the last vector to the next word: logits, softmax, loss, and one step of learning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.arithmetic import attention, learning
from model.worked import attention_steps as steps
from model.worked import latex
from model.worked.example import Array, Input, Step, Values, given, numbered, whole, worked
from model.worked.printed import Printed
from model.worked.source import INTRODUCTION

WORDS = ("a", "am", "I", "thanks", "student", "<eos>")
_DIMENSIONS = numbered("dim", 4)
_TIMES = tuple(f"t = {time}" for time in (1, 2, 3))


def _logits_step(logits: Array, hidden: Array, matrix: Array, bias: Array) -> Step:
    return Step(
        "Logits",
        r"\ell = x\, W + b",
        logits,
        rf"\ell_0 = {latex.dot(hidden, matrix[:, 0])} + {latex.factor(bias[0])} = "
        rf"{latex.number(logits[0])}",
        columns=WORDS,
        quantity="score",
    )


_MATRIX = [
    [1.0, 0.1, -0.6, 0.1, 0.3, -0.3],
    [0.1, 1.0, 0.8, -0.2, 0.2, 0.1],
    [0.3, -0.5, 0.9, 0.1, -0.4, 0.2],
    [-0.3, 0.8, 0.0, 0.2, 0.1, -0.5],
]


def _matrix_input() -> Input:
    return given("matrix", "Output matrix W (chosen here)", _MATRIX, _DIMENSIONS, WORDS)


@worked(
    "most-probable-word",
    "§13",
    "The most probable word, and the loss",
    "A linear layer gives one logit for each word, the softmax makes them probabilities. "
    "The loss compares them with the right word.",
    given("hidden", "Last vector (chosen here)", [1, 0.5, -0.4, 0.3], _DIMENSIONS),
    _matrix_input(),
    given("bias", "Bias b (chosen here)", [0, 0.1, 0, -0.1, 0, 0], WORDS),
    whole("target", "Index of the right word", 1, 0, 5),
    given("rate", "Learning rate η", 1, lowest=0, highest=10),
)
def _most_probable(values: Values) -> tuple[Step, ...]:
    hidden, matrix = values["hidden"], values["matrix"]
    target, rate = int(values["target"]), float(values["rate"])
    logits = hidden @ matrix + values["bias"]
    shares = attention.softmax(logits)
    best = int(shares.argmax())
    hot = learning.one_hot(np.array([target]), len(WORDS))[0]
    return (
        _logits_step(logits, hidden, matrix, values["bias"]),
        Step("Probabilities", r"p_v = \frac{e^{\ell_v}}{\sum_w e^{\ell_w}}", shares,
             latex.softmax(logits, shares), columns=WORDS, quantity="weight"),
        Step("Index of the most probable word", r"\mathrm{arg\,max}_v\; p_v", np.array(best),
             rf"p_{{{best}}} = {latex.number(shares[best])}",
             comment=f"Index {best} is “{WORDS[best]}”."),
        Step("One-hot target", r"y_v = 1\ \text{for the right word}", hot,
             rf"y = {latex.row(hot)}", columns=WORDS, notes=Printed(
                 "0 1 0 0 0 0", INTRODUCTION.at("Final layer"), "OHE of word 'am' 0 1 0 0 0 0"),
             comment=f"Index {target} is “{WORDS[target]}”."),
        *_learning_steps(logits, shares, hot, rate),
    )  # fmt: skip


def _learning_steps(logits: Array, shares: Array, hot: Array, rate: float) -> tuple[Step, ...]:
    right = int(hot.argmax())
    gradient = shares - hot
    moved = logits - rate * gradient
    losses = np.array([learning.cross_entropy(scores, hot) for scores in (logits, moved)])
    return (
        Step("Loss", r"L = -\sum_v y_v \ln p_v", losses[0],
             rf"-\ln {latex.number(shares[right])} = {latex.number(losses[0])}",
             comment="Only the probability of the right word counts."),
        Step("Gradient for the logits", r"\frac{\partial L}{\partial \ell_v} = p_v - y_v", gradient,
             rf"{latex.row(shares)} - {latex.row(hot)}", columns=WORDS,
             comment="Back-propagation starts here: down for wrong words, up for the right one."),
        Step("Loss after one step on the logits", r"\ell \leftarrow \ell - \eta\,(p - y)", losses,
             rf"\eta = {latex.number(rate)}:\ {latex.number(losses[0])} \to "
             rf"{latex.number(losses[1])}", columns=("before", "after")),
    )  # fmt: skip


@worked(
    "to-the-vocabulary",
    "§13",
    "From the width to the vocabulary",
    "The last linear layer turns each vector into as many logits as there are words.",
    whole("length", "Length", 3, 1, 100_000),
    whole("width", "Width", 512, 1, 16_384),
    whole("vocabulary", "Vocabulary", 10_000, 2, 1_000_000),
)
def _to_vocabulary(values: Values) -> tuple[Step, ...]:
    length, width, vocabulary = (int(values[name]) for name in ("length", "width", "vocabulary"))
    uniform = float(np.log(vocabulary))
    return (
        Step("Shape of the output matrix", r"d_{\text{model}} \times V",
             np.array([width, vocabulary]),
             latex.shape((width, vocabulary)), columns=("width", "vocabulary")),
        Step("Shape of the logits", r"n \times V", np.array([length, vocabulary]),
             latex.shape((length, vocabulary)), columns=("token", "vocabulary"),
             comment="Every position gets one number for each word of the vocabulary."),
        Step("Parameters of the linear layer", r"d_{\text{model}} \cdot V + V",
             np.array(width * vocabulary + vocabulary), rf"{width} \cdot {latex.number(vocabulary)} + "
             rf"{latex.number(vocabulary)} = {latex.number(width * vocabulary + vocabulary)}"),
        Step("Loss of a model that knows nothing", r"\ln V", np.array(uniform),
             rf"\ln {latex.number(vocabulary)} = {latex.number(uniform)}",
             comment="With equal probabilities the right word has 1/V, and −ln(1/V) = ln V."),
    )  # fmt: skip


@worked(
    "sequence-in-three-steps",
    "§13",
    "Three source tokens in, three words out",
    "At each time step the decoder reads the source and what was given out before.",
    given(
        "source",
        "Encoder output (chosen here)",
        [[0.8, -0.2, 0.5, 0.1], [-0.3, 0.9, 0.2, 0.6], [0.4, 0.3, -0.7, 1]],
        numbered("source", 3, start=1),
        _DIMENSIONS,
    ),
    given(
        "target",
        "Vectors of <start>, y1 and y2 (chosen here)",
        [[-0.5, 0.4, 0.6, -0.3], [0.2, 0.7, -0.4, 0.5], [0.9, -0.1, 0.3, -0.6]],
        ("<start>", "y1", "y2"),
        _DIMENSIONS,
    ),
    _matrix_input(),
)
def _sequence(values: Values) -> tuple[Step, ...]:
    source, target, matrix = values["source"], values["target"], values["matrix"]
    allowed = attention.causal_mask(3)
    tokens = numbered("source", 3, start=1)
    own = attention.attend(target, target, target, allowed=allowed)
    stream = target + own.output
    cross = attention.attend(stream, source, source)
    final = stream + cross.output
    logits = final @ matrix
    shares = attention.softmax(logits)
    best = shares.argmax(axis=1).astype(np.float64)
    hidden = attention.masked(own.scaled, allowed)
    seen = ("<start>", "y1", "y2")
    return (
        replace(
            steps.weigh(hidden, _TIMES, seen, row=1, allowed=allowed),
            title="What each step reads of the target so far",
            comment="At t = 1 only the start token is there; at t = 3 also y1 and y2.",
        ),
        replace(
            steps.weigh(cross.scaled, _TIMES, tokens), title="What each step reads of the source"
        ),
        Step("Vectors after both, with their shortcuts", r"x + \text{self} + \text{cross}", final,
             rf"t = 1:\ {latex.row(final[0])}", _TIMES, _DIMENSIONS, "output"),
        Step("Logits", r"\ell = x\, W", logits, rf"t = 1:\ {latex.row(logits[0])}", _TIMES, WORDS,
             "score"),
        Step("Probabilities", r"p_v = \frac{e^{\ell_v}}{\sum_w e^{\ell_w}}", shares,
             rf"t = 1:\ {latex.softmax(logits[0], shares[0])}", _TIMES, WORDS, "weight"),
        Step("Index of the word given out", r"y_t = \mathrm{arg\,max}_v\; p_v", best,
             latex.row(best), columns=_TIMES,
             comment="Given out: " + ", ".join(f"“{WORDS[int(index)]}”" for index in best) + "."),
    )  # fmt: skip

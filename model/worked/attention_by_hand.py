"""Self-attention worked by hand: "The cat sat", the one-hot picture, and the soft look-up."""

import numpy as np

from model.worked import latex
from model.worked.example import Array, Sheet, given, numbered, worked

_TOKENS = ("The", "Cat", "Sat")


@worked(
    "§1",
    "The cat sat: self-attention by hand",
    "Each token compares its query with every key, turns the scores into weights, and takes the "
    "weighted sum of the values.",
    given("embedding", "Embeddings E", [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]], _TOKENS, "dim"),
    given("q_matrix", "W_Q", np.eye(4), "dim", "dim"),
    given("k_matrix", "W_K", np.eye(4), "dim", "dim"),
    given("v_matrix", "W_V", np.eye(4), "dim", "dim"),
)
def the_cat_sat(
    sheet: Sheet, embedding: Array, q_matrix: Array, k_matrix: Array, v_matrix: Array
) -> None:
    query, key, value = (
        _projected(sheet, embedding, matrix, letter)
        for letter, matrix in (("Q", q_matrix), ("K", k_matrix), ("V", v_matrix))
    )
    scores = sheet.scores(query, key, _TOKENS)
    scaled = sheet.scaled(scores, 4, _TOKENS, cell=(0, 1))
    formula = r"\mathrm{softmax}\!\left(\frac{q_i K^\top}{\sqrt{d_k}}\right)"
    title = "The rows that enter the softmax"
    sheet.step(title, formula, scaled, _TOKENS, _TOKENS, quantity="score")
    sheet.numbers(r"\mathrm{softmax}(@)\ \text{for Cat}", scaled[1])
    weights = sheet.weights(scaled, _TOKENS)
    _output_of_the(sheet, weights, value)


def _projected(sheet: Sheet, embedding: Array, matrix: Array, letter: str) -> Array:
    result = sheet.project(embedding, matrix, letter, _TOKENS, "E")
    sheet.remark(
        "The matrix is the identity here, so it changes nothing; "
        "in a model it starts random and is learned by back-propagation."
    )
    return result


def _output_of_the(sheet: Sheet, weights: Array, value: Array) -> None:
    terms = weights[0][:, None] * value
    formula, title = r"a_{\text{The},\,j}\; v_j", "The terms of The's output"
    sheet.step(title, formula, terms, _TOKENS, "dim", quantity="value")
    sheet.numbers(r"\text{dim 0: } @", latex.total(terms[:, 0]))
    sheet.remark("Adding the three rows of this table gives the first row of the output.")
    sheet.output(weights, value, _TOKENS)


@worked(
    "§1",
    "One-hot inputs: the outputs are the weights",
    "With one-hot inputs and W = I the output rows are the weights themselves, "
    "so each must sum to 1.",
    given("embedding", "One-hot inputs", np.eye(3), _TOKENS, "dim"),
)
def one_hot_picture(sheet: Sheet, embedding: Array) -> None:
    formula = r"S = E E^\top"
    scores = sheet.scores(embedding, embedding, _TOKENS, cell=(0, 0), formula=formula)
    scaled = sheet.scaled(scores, 3, _TOKENS, cell=(0, 0))
    weights = sheet.weights(scaled, _TOKENS)
    output = sheet.output(weights, embedding, _TOKENS)
    sums = sheet.step("Sum of each output row", r"\sum_d z_{id}", output.sum(axis=1), _TOKENS)
    sheet.numbers("@ = @", latex.total(output[0]), sums[0])
    sheet.remark("Each output row is a row of weights here, so every sum is 1.")


@worked(
    "§1",
    "Query, key and value: a soft look-up",
    "The query says what a token looks for, the key says what a token offers, and the value is "
    "what it passes on. It works like a dictionary in which every key matches to some degree.",
    given("query", "Query", [1, 0.5], "dim"),
    given("keys", "Keys", [[1, 0], [0, 1], [1, 1]], "entry", "dim"),
    given("values", "Values", [[10, 0], [0, 10], [5, 5]], "entry", "dim"),
    given("sharpness", "Sharpness", 1, lowest=0, highest=100),
)
def soft_look_up(sheet: Sheet, query: Array, keys: Array, values: Array, sharpness: float) -> None:
    queries, entries = ("the query",), numbered("entry", 3)
    title = "How well each key matches the query"
    scores = sheet.scores(query[None], keys, queries, entries, title=title)
    title = "What a dict would return: the value of the best key alone"
    sheet.output(np.eye(3)[[scores.argmax()]], values, queries, title=title)
    sheet.remark("A dict gives one value; here that is the value whose key scores highest.")
    weights = sheet.weights(
        scores * sharpness,
        queries,
        entries,
        title="The match as weights",
        formula=r"a = \mathrm{softmax}(\text{sharpness} \cdot q K^\top)",
    )
    title = "What attention returns: the sum of all values, each times its weight"
    sheet.output(weights, values, queries, title=title)
    sheet.remark("The larger the sharpness, the closer this comes to the dict.")

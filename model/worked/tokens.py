"""Windows with their shifted targets, the embedding as a look-up, and contextual vectors."""

import numpy as np

from model.arithmetic import attention, learning
from model.worked.example import Array, Sheet, given, token_ids, whole, worked

_IDS = [40, 367, 2885, 1464, 1807, 3619, 402, 271, 10899]
_EMBEDDING = [
    [0.3, -0.2, 0.1],
    [0.9, 0.4, -0.5],
    [1.2, -0.7, 0.6],
    [-0.4, 0.8, 0.2],
    [0.1, 0.5, -1.1],
    [-0.6, 0.3, 0.7],
]
_SENTENCES = ("first sentence", "second sentence")
_FIRST = [[0.9, 0, 1, 0], [0.2, 0.8, 0.6, 0]]
_SECOND = [[0, 0.3, -0.5, 1.2], [0.6, -0.7, 0, 0.9]]


@worked(
    "§11",
    "Windows, stride and the next token",
    "Training data are windows of text. The targets are the same windows shifted by one token.",
    token_ids("ids", "Token ids (chosen here)", _IDS),
    whole("length", "Window length", 4, 1, 8),
    whole("stride", "Stride", 2, 1, 8),
)
def sliding_windows(sheet: Sheet, ids: Array, length: int, stride: int) -> None:
    if length >= len(ids):
        raise ValueError(
            f"A window of {length} tokens and its next token need more than {len(ids)} ids."
        )
    inputs, formula = learning.windows(ids, length, stride), r"x_k = [t_{sk},\ \ldots,\ t_{sk+n-1}]"
    sheet.step("Inputs", formula, inputs, "window", "position")
    sheet.numbers(r"\text{window 0: } @", inputs[0])
    targets = learning.windows(ids, length, stride, offset=1)
    formula = r"y_k = [t_{sk+1},\ \ldots,\ t_{sk+n}]"
    sheet.step("Targets: the inputs shifted by one", formula, targets, "window", "position")
    sheet.numbers(r"\text{window 0: } @", targets[0])
    sheet.remark(
        "The offset of +1 makes every position predict its next token; "
        "the stride is something else, the step from one window to the next."
    )
    starts = stride * np.arange(len(inputs))
    sheet.step("Where each window starts", r"s \cdot k", starts, "window")
    sheet.numbers("s = @", stride)
    shared = max(length - stride, 0)
    title = "Tokens two neighbouring windows share"
    sheet.step(title, r"\max(n - s,\ 0)", shared)
    sheet.numbers(r"\max(@ - @,\ 0) = @", length, stride, shared)
    sheet.remark("Windows overlap where the stride is smaller than the length.")


@worked(
    "§11",
    "An embedding is a look-up",
    "Multiplying a one-hot vector by the embedding matrix picks one of its rows.",
    whole("ids", "Token ids", [2, 0, 5, 2], 0, 5, "token"),
    given("matrix", "Embedding matrix E (chosen here)", _EMBEDDING, "id", "dim"),
)
def look_up_is_one_hot(sheet: Sheet, ids: Array, matrix: Array) -> None:
    rows = tuple(f"token {index} (id {token:g})" for index, token in enumerate(ids))
    hot = learning.one_hot(ids, len(matrix))
    formula = r"h_{t,v} = 1\ \text{where } v = \mathrm{id}_t"
    sheet.step("One-hot vectors", formula, hot, rows, "id")
    sheet.numbers(r"@ \to @", ids[0], hot[0])
    product = sheet.step("One-hot times matrix", r"h\, E", hot @ matrix, rows, "dim")
    sheet.numbers(r"@\,E = @", hot[0], product[0])
    picked = matrix[ids.astype(np.int64)]
    sheet.step("Rows looked up", r"E_{\mathrm{id}_t}", picked, rows, "dim")
    sheet.numbers("E_{@} = @", ids[0], picked[0])
    sheet.difference(product, picked, "Product minus look-up", rows, "dim")
    sheet.remark("All other rows are multiplied by 0, so the product is the row.")


@worked(
    "§14",
    "The same word in two sentences",
    "Before attention a word has one fixed vector. After it the vector depends on the sentence.",
    given("word", "The word's vector (chosen here)", [1, 0.5, 0, 0.2], "dim"),
    given("first", "Neighbours in the first sentence (chosen here)", _FIRST, "neighbour", "dim"),
    given("second", "Neighbours in the second sentence (chosen here)", _SECOND, "neighbour", "dim"),
)
def same_word_two_sentences(sheet: Sheet, word: Array, first: Array, second: Array) -> None:
    before = np.stack([word, word])
    title = "The word's vector before attention"
    sheet.step(title, "x", before, _SENTENCES, "dim")
    sheet.numbers("@", word)
    sheet.remark("A fixed vector for each word, whatever the words around it.")
    sentences = [np.vstack([word, neighbours]) for neighbours in (first, second)]
    runs = [attention.attend(vectors, vectors, vectors) for vectors in sentences]
    weights = np.stack([run.weights[0] for run in runs])
    tokens = ("itself", "neighbour 0", "neighbour 1")
    formula = r"\mathrm{softmax}\!\left(\frac{x X^\top}{\sqrt{d_k}}\right)"
    sheet.step("Its weights", formula, weights, _SENTENCES, tokens, quantity="weight")
    sheet.numbers(r"\text{first: } @", weights[0])
    after = np.stack([run.output[0] for run in runs])
    title = "The word's vector after attention"
    sheet.step(title, "z = a X", after, _SENTENCES, "dim", quantity="output")
    sheet.numbers(r"\text{first: } @", after[0])
    sheet.remark("A contextual vector: the neighbours are mixed in.")
    cosines = np.array([learning.cosine(*before), learning.cosine(*after)])
    title = "Cosine similarity between the two sentences"
    formula = r"\frac{u \cdot v}{\lVert u \rVert\, \lVert v \rVert}"
    sheet.step(title, formula, cosines, ("before attention", "after attention"))
    sheet.numbers("@", cosines)
    sheet.remark("1 means the same direction.")

"""From the last vector to the next word: logits, softmax, loss, and one step of learning."""

import numpy as np

from model.arithmetic import attention, learning
from model.worked import latex
from model.worked.example import Array, Sheet, given, numbered, whole, worked

_WORDS = ("a", "am", "I", "thanks", "student", "<eos>")
_TIMES = numbered("t =", 3, start=1)
_TARGET, _SOURCE = ("<start>", "y1", "y2"), numbered("source", 3, start=1)
_PROBABILITIES = r"p_v = \frac{e^{\ell_v}}{\sum_w e^{\ell_w}}"
_SENTENCE = [[0.8, -0.2, 0.5, 0.1], [-0.3, 0.9, 0.2, 0.6], [0.4, 0.3, -0.7, 1]]
_WRITTEN = [[-0.5, 0.4, 0.6, -0.3], [0.2, 0.7, -0.4, 0.5], [0.9, -0.1, 0.3, -0.6]]
_OUTPUT_MATRIX = [
    [1.0, 0.1, -0.6, 0.1, 0.3, -0.3],
    [0.1, 1.0, 0.8, -0.2, 0.2, 0.1],
    [0.3, -0.5, 0.9, 0.1, -0.4, 0.2],
    [-0.3, 0.8, 0.0, 0.2, 0.1, -0.5],
]
_MATRIX = given("matrix", "Output matrix W (chosen here)", _OUTPUT_MATRIX, "dim", _WORDS)


@worked(
    "§13",
    "The most probable word, and the loss",
    "A linear layer gives one logit for each word, the softmax makes them probabilities. "
    "The loss compares them with the right word.",
    given("hidden", "Last vector (chosen here)", [1, 0.5, -0.4, 0.3], "dim"),
    _MATRIX,
    given("bias", "Bias b (chosen here)", [0, 0.1, 0, -0.1, 0, 0], _WORDS),
    whole("target", "Index of the right word", 1, 0, 5),
    given("rate", "Learning rate η", 1, lowest=0, highest=10),
)
def most_probable_word(
    sheet: Sheet, hidden: Array, matrix: Array, bias: Array, target: int, rate: float
) -> None:
    logits = hidden @ matrix + bias
    sheet.step("Logits", r"\ell = x\, W + b", logits, _WORDS, quantity="score")
    sheet.numbers(r"\ell_0 = @ + @ = @", latex.dot(hidden, matrix[:, 0]), bias[0], logits[0])
    shares = attention.softmax(logits)
    sheet.step("Probabilities", _PROBABILITIES, shares, _WORDS, quantity="weight")
    sheet.numbers(latex.softmax(logits, shares))
    best = int(shares.argmax())
    sheet.step("Index of the most probable word", r"\mathrm{arg\,max}_v\; p_v", best)
    sheet.numbers("p_{@} = @", best, shares[best])
    sheet.remark(f"Index {best} is “{_WORDS[best]}”.")
    hot = learning.one_hot(np.array([target]), len(_WORDS))[0]
    sheet.step("One-hot target", r"y_v = 1\ \text{for the right word}", hot, _WORDS)
    sheet.numbers("y = @", hot)
    sheet.remark(f"Index {target} is “{_WORDS[target]}”.")
    before = learning.cross_entropy(logits, hot)
    sheet.step("Loss", r"L = -\sum_v y_v \ln p_v", before)
    sheet.numbers(r"-\ln @ = @", shares[target], before)
    sheet.remark("Only the probability of the right word counts.")
    gradient, formula = shares - hot, r"\frac{\partial L}{\partial \ell_v} = p_v - y_v"
    sheet.step("Gradient for the logits", formula, gradient, _WORDS)
    sheet.numbers("@ - @", shares, hot)
    sheet.remark("Back-propagation starts here: down for wrong words, up for the right one.")
    after = learning.cross_entropy(logits - rate * gradient, hot)
    title, formula = "Loss after one step on the logits", r"\ell \leftarrow \ell - \eta\,(p - y)"
    sheet.step(title, formula, (before, after), ("before", "after"))
    sheet.numbers(r"\eta = @:\ @ \to @", rate, before, after)


@worked(
    "§13",
    "From the width to the vocabulary",
    "The last linear layer turns each vector into as many logits as there are words.",
    whole("length", "Length", 3, 1, 100_000),
    whole("width", "Width", 512, 1, 16_384),
    whole("vocabulary", "Vocabulary", 10_000, 2, 1_000_000),
)
def to_the_vocabulary(sheet: Sheet, length: int, width: int, vocabulary: int) -> None:
    matrix = (width, vocabulary)
    title = "Shape of the output matrix"
    sheet.step(title, r"d_{\text{model}} \times V", matrix, ("width", "vocabulary"))
    sheet.numbers(latex.shape(matrix))
    logits = (length, vocabulary)
    sheet.step("Shape of the logits", r"n \times V", logits, ("token", "vocabulary"))
    sheet.numbers(latex.shape(logits))
    sheet.remark("Every position gets one number for each word of the vocabulary.")
    count, formula = width * vocabulary + vocabulary, r"d_{\text{model}} \cdot V + V"
    sheet.step("Parameters of the linear layer", formula, count)
    sheet.numbers(r"@ \cdot @ + @ = @", width, vocabulary, vocabulary, count)
    loss = sheet.step("Loss of a model that knows nothing", r"\ln V", np.log(vocabulary))
    sheet.numbers(r"\ln @ = @", vocabulary, loss)
    sheet.remark("With equal probabilities the right word has 1/V, and −ln(1/V) = ln V.")


@worked(
    "§13",
    "Three source tokens in, three words out",
    "At each time step the decoder reads the source and the words it has written so far.",
    given("source", "Encoder output (chosen here)", _SENTENCE, _SOURCE, "dim"),
    given("target", "Vectors of <start>, y1 and y2 (chosen here)", _WRITTEN, _TARGET, "dim"),
    _MATRIX,
)
def sequence_in_three_steps(sheet: Sheet, source: Array, target: Array, matrix: Array) -> None:
    allowed = attention.causal_mask(3)
    own = attention.attend(target, target, target, allowed=allowed)
    hidden = attention.masked(own.scaled, allowed)
    title = "What each step reads of the target so far"
    sheet.weights(hidden, _TIMES, _TARGET, row=1, allowed=allowed, title=title)
    sheet.remark("At t = 1 only the start token is there; at t = 3 also y1 and y2.")
    stream = target + own.output
    cross = attention.attend(stream, source, source)
    sheet.weights(cross.scaled, _TIMES, _SOURCE, title="What each step reads of the source")
    final = stream + cross.output
    title = "Vectors after both, with their shortcuts"
    formula = r"x + \text{self} + \text{cross}"
    sheet.step(title, formula, final, _TIMES, "dim", quantity="output")
    sheet.numbers(r"t = 1:\ @", final[0])
    logits = final @ matrix
    sheet.step("Logits", r"\ell = x\, W", logits, _TIMES, _WORDS, quantity="score")
    sheet.numbers(r"t = 1:\ @", logits[0])
    shares = attention.softmax(logits)
    sheet.step("Probabilities", _PROBABILITIES, shares, _TIMES, _WORDS, quantity="weight")
    sheet.numbers(r"t = 1:\ @", latex.softmax(logits[0], shares[0]))
    best, formula = shares.argmax(axis=1), r"y_t = \mathrm{arg\,max}_v\; p_v"
    sheet.step("Index of the chosen word", formula, best, _TIMES)
    sheet.numbers("@", best)
    sheet.remark("Chosen: " + ", ".join(f"“{_WORDS[index]}”" for index in best) + ".")

"""Whole models: windows and embeddings, encoder and decoder, parameters, and the output (§11 to §14)."""

import numpy as np

from model.arithmetic import activations, attention, learning, normalization, sizes
from model.nn.config import TransformerConfig
from model.worked import latex
from model.worked.example import Array64, Sheet, given, numbered, token_ids, whole, worked
from model.worked.notes import INTRODUCTION, TWO_LAYERS

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
def sliding_windows(sheet: Sheet, ids: Array64, length: int, stride: int) -> None:
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
def look_up_is_one_hot(sheet: Sheet, ids: Array64, matrix: Array64) -> None:
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
def same_word_two_sentences(sheet: Sheet, word: Array64, first: Array64, second: Array64) -> None:
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


_SOURCE, _TARGET = numbered("source", 3), numbered("target", 2)
_STREAM = [[0.8, -0.2, 0.5, 0.1], [-0.3, 0.9, 0.2, 0.6], [0.4, 0.3, -0.7, 1]]
_WRITTEN = [[0.2, 0.7, -0.4, 0.5], [0.9, -0.1, 0.3, -0.6]]
_RANDOM = np.random.default_rng(12).uniform(-1, 1, (2, 4, 8)).round(1)
_MATRICES = (
    given("first", "W_1 (chosen here)", _RANDOM[0], "dim", "hidden"),
    given("second", "W_2 (chosen here)", _RANDOM[1].reshape(8, 4), "hidden", "dim"),
)


def _add_and_norm(
    sheet: Sheet, stream: Array64, update: Array64, tokens: tuple[str, ...], title: str
) -> Array64:
    total = stream + update
    result, formula = normalization.layer_norm(total), r"\mathrm{LN}(x + f(x))"
    sheet.step(title, formula, result, tokens, "dim", quantity="output")
    sheet.numbers(r"\mathrm{LN}(@) = @", total[0], result[0])
    sheet.remark("The sub-layer's output is added to its input; then each row is normalized.")
    return result


def _feed_forward(
    sheet: Sheet,
    stream: Array64,
    first: Array64,
    second: Array64,
    tokens: tuple[str, ...],
    title: str,
) -> Array64:
    result = activations.feed_forward(stream, first, second)
    sheet.step(title, r"\mathrm{ReLU}(x\, W_1)\, W_2", result, tokens, "dim")
    sheet.numbers(r"\text{@: } @", tokens[0], result[0])
    return result


@worked(
    "§12",
    "One encoder layer, with W = I",
    "Self-attention, add and norm, feed-forward, add and norm.",
    given("source", "Source vectors (chosen here)", _STREAM, _SOURCE, "dim"),
    *_MATRICES,
)
def encoder_layer(sheet: Sheet, source: Array64, first: Array64, second: Array64) -> None:
    sheet.scores(source, source, _SOURCE)
    run = attention.attend(source, source, source)
    sheet.weights(run.scaled, _SOURCE, title="Self-attention weights")
    sheet.remark("No mask: every source token may attend to every other.")
    output = sheet.output(run.weights, source, _SOURCE, title="Self-attention output")
    stream = _add_and_norm(sheet, source, output, _SOURCE, "Add and norm")
    update = _feed_forward(sheet, stream, first, second, _SOURCE, "Feed-forward")
    _add_and_norm(sheet, stream, update, _SOURCE, "Add and norm again")


@worked(
    "§12",
    "One decoder layer, with W = I",
    "Masked self-attention, cross-attention, feed-forward, each with add and norm. "
    "As in English to French: the target reads the source.",
    given("target", "Target vectors (chosen here)", _WRITTEN, _TARGET, "dim"),
    given("source", "Encoder output (chosen here)", _STREAM, _SOURCE, "dim"),
    *_MATRICES,
)
def decoder_layer(
    sheet: Sheet, target: Array64, source: Array64, first: Array64, second: Array64
) -> None:
    allowed = attention.causal_mask(len(target))
    run = attention.attend(target, target, target, allowed=allowed)
    hidden = attention.masked(run.scaled, allowed)
    title = "1. Masked self-attention: weights"
    sheet.weights(hidden, _TARGET, row=1, allowed=allowed, title=title)
    sheet.remark("Queries, keys and values all come from the decoder.")
    title = "Masked self-attention: output"
    output = sheet.output(run.weights, target, _TARGET, row=1, title=title)
    stream = _add_and_norm(sheet, target, output, _TARGET, "Add and norm")

    title = "2. Cross-attention: scores"
    formula = r"S = Q_{\text{decoder}}\, K_{\text{encoder}}^\top"
    sheet.scores(stream, source, _TARGET, _SOURCE, title=title, formula=formula)
    sheet.remark("Queries from the decoder; keys and values from the encoder's output.")
    run = attention.attend(stream, source, source)
    sheet.weights(run.scaled, _TARGET, _SOURCE, title="Cross-attention: weights")
    sheet.remark("No mask: the whole source may be read.")
    output = sheet.output(run.weights, source, _TARGET, title="Cross-attention: output")
    stream = _add_and_norm(sheet, stream, output, _TARGET, "Add and norm after cross-attention")

    update = _feed_forward(sheet, stream, first, second, _TARGET, "3. Feed-forward")
    _add_and_norm(sheet, stream, update, _TARGET, "Add and norm after feed-forward")


@worked(
    "§12",
    "The encoder of the 2017 paper",
    "Six equal layers of width 512 with eight heads of 64.",
    whole("layers", "Layers", 6, 1, 200),
    whole("width", "Width", 512, 1, 16_384),
    whole("heads", "Heads", 8, 1, 128),
)
def encoder_of_the_paper(sheet: Sheet, layers: int, width: int, heads: int) -> None:
    configuration, names = (layers, width, heads), ("layers", "width", "heads")
    sheet.step("The paper's sizes", r"N,\ d_{\text{model}},\ h", configuration, names)
    sheet.numbers(r"N = @,\ d_{\text{model}} = @,\ h = @", *configuration)
    head = sizes.head_width(width, heads)
    sheet.step("Width of each head", r"\frac{d_{\text{model}}}{h}", head)
    sheet.numbers(r"\frac{@}{@} = @", width, heads, head)
    parts = {
        "self-attention": sizes.projection_parameters(width, biases=True),
        "feed-forward": sizes.feed_forward_parameters(width, 4 * width),
        "two norms": 2 * sizes.norm_parameters(width),
    }
    counts, formula = tuple(parts.values()), r"4 d^2 + 4 d,\quad 8 d^2 + 5 d,\quad 4 d"
    sheet.step("Parameters of one encoder layer", formula, counts, tuple(parts))
    sheet.numbers(r"4 \cdot @^2 + 4 \cdot @ = @", width, width, counts[0])
    sheet.remark("Counted with biases and a feed-forward layer of width 4·d.")
    layer = sum(counts)
    sheet.step("Parameters of the stack", r"N \cdot \text{layer}", layers * layer)
    sheet.numbers(r"@ \cdot @ = @", layers, layer, layers * layer)


@worked(
    "§12",
    "Training in parallel, generating one token at a time",
    "With the causal mask each row depends on earlier tokens only, "
    "so all rows can be computed together.",
    given("x", "Target vectors (chosen here)", _STREAM, "token", "dim"),
)
def all_positions_at_once(sheet: Sheet, x: Array64) -> None:
    together = attention.attend(x, x, x, allowed=attention.causal_mask(len(x))).output
    title = "All positions in parallel, with the causal mask"
    formula = r"\mathrm{softmax}(\text{masked scores})\, V"
    sheet.step(title, formula, together, "token", "dim", quantity="output")
    sheet.numbers(r"\text{token 2: } @", together[2])
    sheet.remark("Training: the right tokens are known, so all positions are computed in parallel.")
    in_turn = np.stack(
        [attention.attend(x[t : t + 1], x[: t + 1], x[: t + 1]).output[0] for t in range(len(x))]
    )
    title = "One token at a time, from the tokens so far"
    formula = r"z_t = \mathrm{softmax}(q_t K_{\le t}^\top / \sqrt{d_k})\, V_{\le t}"
    sheet.step(title, formula, in_turn, "token", "dim", quantity="output")
    sheet.numbers(r"\text{token 2: } @", in_turn[2])
    sheet.remark("Generation: each new token attends to the ones before it.")
    sheet.difference(together, in_turn, "In parallel minus one at a time", "token", "dim")
    sheet.remark("The mask makes the two equal; that is why teacher forcing works.")


_LABELS = ("Vocabulary", "Context", "Width", "Heads", "Layers", "Dropout", "Biases on Q, K, V")


def _head_width(sheet: Sheet, width: int, heads: int) -> None:
    head = sizes.head_width(width, heads)
    sheet.step("Width of each head", r"\frac{d}{h}", head)
    sheet.numbers(r"\frac{@}{@} = @", width, heads, head)


def _sum_of(sheet: Sheet, title: str, parts: dict[str, int]) -> None:
    total = sum(parts.values())
    sheet.step(title, r"\sum \text{parts}", total)
    sheet.numbers("@ = @", " + ".join(map(latex.number, parts.values())), total)


@worked(
    "§11",
    "Where the parameters of GPT-2 small are",
    "Most parameters lie in the feed-forward layers and in the token embedding. "
    "Tying the output to the embedding saves one of two large matrices.",
    whole("vocabulary", "Vocabulary", 50_257, 1, 1_000_000),
    whole("context", "Context length", 1024, 1, 1_000_000),
    whole("width", "Width", 768, 1, 16_384),
    whole("heads", "Heads", 12, 1, 128),
    whole("layers", "Layers", 12, 1, 200),
    given("dropout", "Dropout", 0.1, lowest=0, highest=0.9),
    whole("qkv_bias", "Biases on Q, K, V (0 or 1)", 0, 0, 1),
)
def gpt_2_parameters(
    sheet: Sheet,
    vocabulary: int,
    context: int,
    width: int,
    heads: int,
    layers: int,
    dropout: float,
    qkv_bias: int,
) -> None:
    configuration = (vocabulary, context, width, heads, layers, dropout, qkv_bias)
    sheet.step("The configuration", r"V,\ n,\ d,\ h,\ L,\ p", configuration, _LABELS)
    sheet.numbers(r"V = @,\ n = @,\ d = @,\ h = @,\ L = @", *configuration[:5])
    _head_width(sheet, width, heads)
    sheet.remark("Neither the number of heads nor dropout adds a parameter.")
    parts = sizes.parameter_parts(
        TransformerConfig(
            "decoder", vocabulary, context, width, heads, decoder_layers=layers,
            d_mlp=4 * width, qkv_bias=bool(qkv_bias), tied=False,
        )
    )  # fmt: skip
    counts, names = np.array(list(parts.values())), tuple(parts)
    formula = r"V d,\quad n d,\quad L\,(4 d^2 + d),\quad \ldots"
    sheet.step("Parameters of each part", formula, counts, names)
    sheet.numbers(r"V d = @ \cdot @ = @", vocabulary, width, counts[0])
    sheet.remark(
        "One layer has 4·d² + d in attention (W_O has a bias), "
        "8·d² + 5·d in the feed-forward and 4·d in two norms."
    )
    shares, formula = 100.0 * counts / counts.sum(), r"100 \cdot \frac{\text{part}}{\text{total}}"
    sheet.step("Share of each part, in percent", formula, shares, names)
    sheet.numbers(r"\text{token embedding: } @", shares[0])
    _sum_of(sheet, "With a separate output matrix", parts)
    del parts["Output matrix"]
    _sum_of(sheet, "With the output tied to the token embedding", parts)
    sheet.remark("Weight tying uses the token embedding again as the output matrix.")
    biases = {} if qkv_bias else {"Biases on Q, K, V": 3 * width * layers}
    _sum_of(sheet, "GPT-2 itself: tied, with biases on Q, K and V", parts | biases)
    sheet.remark("GPT-2 also has 3·d biases on Q, K and V in every layer.")


@worked(
    "§12",
    "A two-layer decoder-only model",
    "Learned positions, post-LN, ReLU and an output matrix of its own. "
    f"The vocabulary is left open in “{TWO_LAYERS.title}”; 10,000 is that of "
    f"{INTRODUCTION.at('Final layer')}.",
    whole("vocabulary", "Vocabulary V", 10_000, 1, 1_000_000),
    whole("context", "Max length", 512, 1, 1_000_000),
    whole("width", "d_model", 256, 1, 16_384),
    whole("heads", "Heads", 4, 1, 128),
    whole("hidden", "d_ff", 1024, 1, 65_536),
    whole("layers", "Layers", 2, 1, 200),
)
def two_layer_decoder(
    sheet: Sheet, vocabulary: int, context: int, width: int, heads: int, hidden: int, layers: int
) -> None:
    _head_width(sheet, width, heads)
    parts = sizes.parameter_parts(
        TransformerConfig(
            "decoder", vocabulary, context, width, heads, decoder_layers=layers,
            d_mlp=hidden, norm_place="post", activation="relu", tied=False,
        )
    )  # fmt: skip
    parts["Output matrix and bias"] = parts.pop("Output matrix") + vocabulary
    formula = r"V d,\quad n d,\quad L\,(4 d^2 + 4 d),\quad \ldots"
    counts = list(parts.values())
    sheet.step("Parameters of each part", formula, counts, tuple(parts))
    sheet.numbers(r"V d = @ \cdot @ = @", vocabulary, width, counts[0])
    sheet.remark("Post-LN has no norm after the last layer, and the output is not tied.")
    _sum_of(sheet, "All parameters", parts)
    outputs = {"attention": width, "feed-forward": hidden, "output": vocabulary}
    bounds = np.array([np.sqrt(6.0 / (width + size)) for size in outputs.values()])
    title = "Largest weight at the start (Xavier uniform)"
    formula = r"\sqrt{\frac{6}{\text{inputs} + \text{outputs}}}"
    sheet.step(title, formula, bounds, tuple(outputs))
    sheet.numbers(r"\sqrt{\frac{6}{@ + @}} = @", width, width, bounds[0])
    sheet.remark("Weights are drawn evenly between minus and plus this bound.")


_WORDS = ("a", "am", "I", "thanks", "student", "<eos>")
_TIMES = numbered("t =", 3, start=1)
_BEGUN, _THREE = ("<start>", "y1", "y2"), numbered("source", 3, start=1)
_PROBABILITIES = r"p_v = \frac{e^{\ell_v}}{\sum_w e^{\ell_w}}"
_SENTENCE = [[0.8, -0.2, 0.5, 0.1], [-0.3, 0.9, 0.2, 0.6], [0.4, 0.3, -0.7, 1]]
_LAST = [[-0.5, 0.4, 0.6, -0.3], [0.2, 0.7, -0.4, 0.5], [0.9, -0.1, 0.3, -0.6]]
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
    sheet: Sheet, hidden: Array64, matrix: Array64, bias: Array64, target: int, rate: float
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
    given("source", "Encoder output (chosen here)", _SENTENCE, _THREE, "dim"),
    given("target", "Vectors of <start>, y1 and y2 (chosen here)", _LAST, _BEGUN, "dim"),
    _MATRIX,
)
def sequence_in_three_steps(
    sheet: Sheet, source: Array64, target: Array64, matrix: Array64
) -> None:
    allowed = attention.causal_mask(3)
    own = attention.attend(target, target, target, allowed=allowed)
    hidden = attention.masked(own.scaled, allowed)
    title = "What each step reads of the target so far"
    sheet.weights(hidden, _TIMES, _BEGUN, row=1, allowed=allowed, title=title)
    sheet.remark("At t = 1 only the start token is there; at t = 3 also y1 and y2.")
    stream = target + own.output
    cross = attention.attend(stream, source, source)
    sheet.weights(cross.scaled, _TIMES, _THREE, title="What each step reads of the source")
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


@worked(
    "§12",
    "How does an encoder make one vector of a sentence?",
    "It takes the mean of the tokens' last vectors, without the padding, and brings it to length 1.",
    given(
        "tokens",
        "Last vectors of the tokens (chosen here)",
        [[0.8, 0.1, 0.5], [0.4, 0.9, -0.2], [0.6, 0.2, 0.3], [0.1, -0.7, 0.9]],
        "token",
        "dim",
    ),
    whole("mask", "1 for a token, 0 for padding", [1, 1, 1, 0], 0, 1, "token"),
    given("other", "Vector of another sentence (chosen here)", [0.5, 0.6, 0.1], "dim"),
)
def sentence_vector(sheet: Sheet, tokens: Array64, mask: Array64, other: Array64) -> None:
    count = mask.sum()
    if count == 0:
        raise ValueError("Every token is padding, so there is nothing to take the mean of.")
    total = sheet.step("Sum without the padding", r"\sum_i m_i x_i", mask @ tokens, "dim")
    sheet.numbers(r"\text{token 0: } @,\ \text{sum: } @", tokens[0], total)
    mean = sheet.step("Mean", r"\frac{\sum_i m_i x_i}{\sum_i m_i}", total / count, "dim")
    sheet.numbers(r"\frac{@}{@} = @", total[0], count, mean[0])
    size = float(np.linalg.norm(mean))
    unit = mean / size if size else mean
    sheet.step("Brought to length 1", r"\frac{x}{|x|}", unit, "dim", quantity="output")
    sheet.numbers(r"|x| = @,\ @ \to @", size, mean, unit)
    padded = tokens.mean(axis=0)
    pooled = np.array([learning.cosine(each, other) for each in (mean, tokens[0], padded)])
    names = ("mean", "first token alone", "mean with the padding")
    sheet.step("Cosine with the other sentence", r"\cos(x,\ y)", pooled, names)
    sheet.numbers("@", pooled)
    sheet.remark("BERT's [CLS] is a first token that can be taken alone; MiniLM takes the mean.")


@worked(
    "§13",
    "Beam search beside greedy",
    "Greedy takes the most probable word each time. A beam of two keeps two beginnings, and may "
    "find a more probable sentence.",
    given("first", "First word (chosen here)", [0.55, 0.45], ("A", "B"), lowest=0, highest=1),
    given(
        "second",
        "Second word after each (chosen here)",
        [[0.4, 0.35, 0.25], [0.9, 0.06, 0.04]],
        ("after A", "after B"),
        ("x", "y", "z"),
        lowest=0,
        highest=1,
    ),
)
def beam_beside_greedy(sheet: Sheet, first: Array64, second: Array64) -> None:
    both = first[:, None] * second
    rows, columns = ("A", "B"), ("x", "y", "z")
    sheet.step("Probability of each sentence", r"p(w_1)\,p(w_2 \mid w_1)", both, rows, columns)
    sheet.numbers(r"@ \cdot @ = @", first[0], second[0, 0], both[0, 0])
    taken = int(first.argmax())
    then = int(second[taken].argmax())
    greedy = both[taken, then]
    formula = r"\max_{w_2}\ p(w_2 \mid \text{the most probable } w_1)"
    sheet.step("What greedy finds", formula, greedy)
    sheet.numbers(r"@ \cdot @ = @", first[taken], second[taken, then], greedy)
    sheet.remark(f"It writes “{rows[taken]} {columns[then]}”.")
    start, end = np.unravel_index(both.argmax(), both.shape)
    best = both[start, end]
    sheet.step("What a beam of two finds", r"\max_{w_1, w_2}\ p(w_1)\,p(w_2 \mid w_1)", best)
    sheet.numbers(r"@ \cdot @ = @", first[start], second[start, end], best)
    sheet.remark(
        f"It writes “{rows[start]} {columns[end]}”. With two first words it sees every sentence of "
        "two words, but not of three."
    )

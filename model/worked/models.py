"""Whole models: windows and embeddings, encoder and decoder, parameters, and the output (§11 to §14)."""

import numpy as np

from model.arithmetic import attention, feed_forward, learning, normalization, sizes
from model.nn.config import TransformerConfig
from model.system.words import Words
from model.worked import latex
from model.worked.example import Array64, Sheet, given, numbered, token_ids, whole, worked
from model.worked.notes import INTRODUCTION, TWO_LAYERS

say = Words("worked.models")

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
    say("windows_stride_next"),
    say("training_data_windows"),
    token_ids("ids", say("token_ids_chosen"), _IDS),
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
    sheet.step(say("targets_inputs_shifted"), formula, targets, "window", "position")
    sheet.numbers(r"\text{window 0: } @", targets[0])
    sheet.remark(say("offset_1_makes_every"))
    starts = stride * np.arange(len(inputs))
    sheet.step(say("window_starts"), r"s \cdot k", starts, "window")
    sheet.numbers("s = @", stride)
    shared = max(length - stride, 0)
    title = say("tokens_neighbouring_windows")
    sheet.step(title, r"\max(n - s,\ 0)", shared)
    sheet.numbers(r"\max(@ - @,\ 0) = @", length, stride, shared)
    sheet.remark(say("windows_overlap_stride"))


@worked(
    "§11",
    say("embedding_look_up"),
    say("multiplying_hot_vector"),
    whole("ids", "Token ids", [2, 0, 5, 2], 0, 5, "token"),
    given("matrix", say("embedding_matrix_e"), _EMBEDDING, "id", "dim"),
)
def look_up_is_one_hot(sheet: Sheet, ids: Array64, matrix: Array64) -> None:
    rows = tuple(f"token {index} (id {token:g})" for index, token in enumerate(ids))
    hot = learning.one_hot(ids, len(matrix))
    formula = r"h_{t,v} = 1\ \text{where } v = \mathrm{id}_t"
    sheet.step("One-hot vectors", formula, hot, rows, "id")
    sheet.numbers(r"@ \to @", ids[0], hot[0])
    product = sheet.step(say("hot_times_matrix"), r"h\, E", hot @ matrix, rows, "dim")
    sheet.numbers(r"@\,E = @", hot[0], product[0])
    picked = matrix[ids.astype(np.int64)]
    sheet.step("Rows looked up", r"E_{\mathrm{id}_t}", picked, rows, "dim")
    sheet.numbers("E_{@} = @", ids[0], picked[0])
    sheet.difference(product, picked, say("product_minus_look"), rows, "dim")
    sheet.remark(say("other_rows_multiplied"))


@worked(
    "§14",
    say("same_word_sentences"),
    say("before_attention_word"),
    given("word", say("word_vector_chosen"), [1, 0.5, 0, 0.2], "dim"),
    given("first", say("neighbours_first_sentence"), _FIRST, "neighbour", "dim"),
    given("second", say("neighbours_second_sentence"), _SECOND, "neighbour", "dim"),
)
def same_word_two_sentences(sheet: Sheet, word: Array64, first: Array64, second: Array64) -> None:
    before = np.stack([word, word])
    title = say("word_vector_before")
    sheet.step(title, "x", before, _SENTENCES, "dim")
    sheet.numbers("@", word)
    sheet.remark(say("fixed_vector_word"))
    sentences = [np.vstack([word, neighbours]) for neighbours in (first, second)]
    runs = [attention.attend(vectors, vectors, vectors) for vectors in sentences]
    weights = np.stack([run.weights[0] for run in runs])
    tokens = ("itself", "neighbour 0", "neighbour 1")
    formula = r"\mathrm{softmax}\!\left(\frac{x X^\top}{\sqrt{d_k}}\right)"
    sheet.step("Its weights", formula, weights, _SENTENCES, tokens, quantity="weight")
    sheet.numbers(r"\text{first: } @", weights[0])
    after = np.stack([run.output[0] for run in runs])
    title = say("word_vector_after")
    sheet.step(title, "z = a X", after, _SENTENCES, "dim", quantity="output")
    sheet.numbers(r"\text{first: } @", after[0])
    sheet.remark(say("contextual_vector_neighbours"))
    cosines = np.array([learning.cosine(*before), learning.cosine(*after)])
    title = say("cosine_similarity_between")
    formula = r"\frac{u \cdot v}{\lVert u \rVert\, \lVert v \rVert}"
    sheet.step(title, formula, cosines, ("before attention", "after attention"))
    sheet.numbers("@", cosines)
    sheet.remark(say("1_means_same_direction"))


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
    sheet.remark(say("sub_layer_output"))
    return result


def _feed_forward(
    sheet: Sheet,
    stream: Array64,
    first: Array64,
    second: Array64,
    tokens: tuple[str, ...],
    title: str,
) -> Array64:
    result = feed_forward.feed_forward(stream, first, second)
    sheet.step(title, r"\mathrm{ReLU}(x\, W_1)\, W_2", result, tokens, "dim")
    sheet.numbers(r"\text{@: } @", tokens[0], result[0])
    return result


@worked(
    "§12",
    say("encoder_layer_w"),
    say("self_attention_add"),
    given("source", say("source_vectors_chosen"), _STREAM, _SOURCE, "dim"),
    *_MATRICES,
)
def encoder_layer(sheet: Sheet, source: Array64, first: Array64, second: Array64) -> None:
    sheet.scores(source, source, _SOURCE)
    run = attention.attend(source, source, source)
    sheet.weights(run.scaled, _SOURCE, title="Self-attention weights")
    sheet.remark(say("mask_every_source"))
    output = sheet.output(run.weights, source, _SOURCE, title="Self-attention output")
    stream = _add_and_norm(sheet, source, output, _SOURCE, "Add and norm")
    update = _feed_forward(sheet, stream, first, second, _SOURCE, "Feed-forward")
    _add_and_norm(sheet, stream, update, _SOURCE, say("add_norm_again"))


@worked(
    "§12",
    say("decoder_layer_w"),
    say("masked_self_attention_cross"),
    given("target", say("target_vectors_chosen"), _WRITTEN, _TARGET, "dim"),
    given("source", say("encoder_output_chosen"), _STREAM, _SOURCE, "dim"),
    *_MATRICES,
)
def decoder_layer(
    sheet: Sheet, target: Array64, source: Array64, first: Array64, second: Array64
) -> None:
    allowed = attention.causal_mask(len(target))
    run = attention.attend(target, target, target, allowed=allowed)
    hidden = attention.masked(run.scaled, allowed)
    title = say("1_masked_self_attention")
    sheet.weights(hidden, _TARGET, row=1, allowed=allowed, title=title)
    sheet.remark(say("queries_keys_values"))
    title = say("masked_self_attention")
    output = sheet.output(run.weights, target, _TARGET, row=1, title=title)
    stream = _add_and_norm(sheet, target, output, _TARGET, "Add and norm")

    title = "2. Cross-attention: scores"
    formula = r"S = Q_{\text{decoder}}\, K_{\text{encoder}}^\top"
    sheet.scores(stream, source, _TARGET, _SOURCE, title=title, formula=formula)
    sheet.remark(say("queries_decoder_keys"))
    run = attention.attend(stream, source, source)
    sheet.weights(run.scaled, _TARGET, _SOURCE, title="Cross-attention: weights")
    sheet.remark(say("mask_whole_source"))
    output = sheet.output(run.weights, source, _TARGET, title="Cross-attention: output")
    stream = _add_and_norm(sheet, stream, output, _TARGET, say("add_norm_after_cross"))

    update = _feed_forward(sheet, stream, first, second, _TARGET, "3. Feed-forward")
    _add_and_norm(sheet, stream, update, _TARGET, say("add_norm_after_feed"))


@worked(
    "§12",
    say("encoder_2017_paper"),
    say("six_equal_layers"),
    whole("layers", "Layers", 6, 1, 200),
    whole("width", "Width", 512, 1, 16_384),
    whole("heads", "Heads", 8, 1, 128),
)
def encoder_of_the_paper(sheet: Sheet, layers: int, width: int, heads: int) -> None:
    configuration, names = (layers, width, heads), ("layers", "width", "heads")
    sheet.step("The paper's sizes", r"N,\ d_{\text{model}},\ h", configuration, names)
    sheet.numbers(r"N = @,\ d_{\text{model}} = @,\ h = @", *configuration)
    head = sizes.head_width(width, heads)
    sheet.step(say("width_head"), r"\frac{d_{\text{model}}}{h}", head)
    sheet.numbers(r"\frac{@}{@} = @", width, heads, head)
    parts = {
        "self-attention": sizes.projection_parameters(width, biases=True),
        "feed-forward": sizes.feed_forward_parameters(width, 4 * width),
        "two norms": 2 * sizes.norm_parameters(width),
    }
    counts, formula = tuple(parts.values()), r"4 d^2 + 4 d,\quad 8 d^2 + 5 d,\quad 4 d"
    sheet.step(say("parameters_encoder_layer"), formula, counts, tuple(parts))
    sheet.numbers(r"4 \cdot @^2 + 4 \cdot @ = @", width, width, counts[0])
    sheet.remark(say("counted_biases_feed"))
    layer = sum(counts)
    sheet.step(say("parameters_stack"), r"N \cdot \text{layer}", layers * layer)
    sheet.numbers(r"@ \cdot @ = @", layers, layer, layers * layer)


@worked(
    "§12",
    say("training_parallel_generating"),
    say("causal_mask_row"),
    given("x", say("target_vectors_chosen"), _STREAM, "token", "dim"),
)
def all_positions_at_once(sheet: Sheet, x: Array64) -> None:
    together = attention.attend(x, x, x, allowed=attention.causal_mask(len(x))).output
    title = say("positions_parallel_causal")
    formula = r"\mathrm{softmax}(\text{masked scores})\, V"
    sheet.step(title, formula, together, "token", "dim", quantity="output")
    sheet.numbers(r"\text{token 2: } @", together[2])
    sheet.remark(say("training_right_tokens"))
    in_turn = np.stack(
        [attention.attend(x[t : t + 1], x[: t + 1], x[: t + 1]).output[0] for t in range(len(x))]
    )
    title = say("token_time_tokens")
    formula = r"z_t = \mathrm{softmax}(q_t K_{\le t}^\top / \sqrt{d_k})\, V_{\le t}"
    sheet.step(title, formula, in_turn, "token", "dim", quantity="output")
    sheet.numbers(r"\text{token 2: } @", in_turn[2])
    sheet.remark(say("generation_new_token"))
    sheet.difference(together, in_turn, say("parallel_minus_time"), "token", "dim")
    sheet.remark(say("mask_makes_equal"))


_LABELS = ("Vocabulary", "Context", "Width", "Heads", "Layers", "Dropout", "Biases on Q, K, V")


def _head_width(sheet: Sheet, width: int, heads: int) -> None:
    head = sizes.head_width(width, heads)
    sheet.step(say("width_head"), r"\frac{d}{h}", head)
    sheet.numbers(r"\frac{@}{@} = @", width, heads, head)


def _sum_of(sheet: Sheet, title: str, parts: dict[str, int]) -> None:
    total = sum(parts.values())
    sheet.step(title, r"\sum \text{parts}", total)
    sheet.numbers("@ = @", " + ".join(map(latex.number, parts.values())), total)


@worked(
    "§11",
    say("parameters_gpt_2"),
    say("most_parameters_lie"),
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
    sheet.remark(say("neither_number_heads"))
    parts = sizes.parameter_parts(
        TransformerConfig(
            "decoder", vocabulary, context, width, heads, decoder_layers=layers,
            d_mlp=4 * width, qkv_bias=bool(qkv_bias), tied=False,
        )
    )  # fmt: skip
    counts, names = np.array(list(parts.values())), tuple(parts)
    formula = r"V d,\quad n d,\quad L\,(4 d^2 + d),\quad \ldots"
    sheet.step(say("parameters_part"), formula, counts, names)
    sheet.numbers(r"V d = @ \cdot @ = @", vocabulary, width, counts[0])
    sheet.remark(say("layer_4_attention"))
    shares, formula = 100.0 * counts / counts.sum(), r"100 \cdot \frac{\text{part}}{\text{total}}"
    sheet.step(say("share_part_percent"), formula, shares, names)
    sheet.numbers(r"\text{token embedding: } @", shares[0])
    _sum_of(sheet, say("separate_output_matrix"), parts)
    del parts["Output matrix"]
    _sum_of(sheet, say("output_tied_token"), parts)
    sheet.remark(say("weight_tying_uses"))
    biases = {} if qkv_bias else {"Biases on Q, K, V": 3 * width * layers}
    _sum_of(sheet, say("gpt_2_itself_tied"), parts | biases)
    sheet.remark(say("gpt_2_also_3_biases"))


@worked(
    "§12",
    say("layer_decoder_only"),
    say(
        "learned_positions_post",
        two_layers=TWO_LAYERS.title,
        final_layer=INTRODUCTION.at("Final layer"),
    ),
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
    parts[say("output_matrix_bias")] = parts.pop("Output matrix") + vocabulary
    formula = r"V d,\quad n d,\quad L\,(4 d^2 + 4 d),\quad \ldots"
    counts = list(parts.values())
    sheet.step(say("parameters_part"), formula, counts, tuple(parts))
    sheet.numbers(r"V d = @ \cdot @ = @", vocabulary, width, counts[0])
    sheet.remark(say("post_ln_norm_after"))
    _sum_of(sheet, "All parameters", parts)
    outputs = {"attention": width, "feed-forward": hidden, "output": vocabulary}
    bounds = np.array([np.sqrt(6.0 / (width + size)) for size in outputs.values()])
    title = say("largest_weight_start")
    formula = r"\sqrt{\frac{6}{\text{inputs} + \text{outputs}}}"
    sheet.step(title, formula, bounds, tuple(outputs))
    sheet.numbers(r"\sqrt{\frac{6}{@ + @}} = @", width, width, bounds[0])
    sheet.remark(say("weights_drawn_evenly"))


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
_MATRIX = given("matrix", say("output_matrix_w"), _OUTPUT_MATRIX, "dim", _WORDS)


@worked(
    "§13",
    say("most_probable_word"),
    say("linear_layer_gives"),
    given("hidden", say("last_vector_chosen"), [1, 0.5, -0.4, 0.3], "dim"),
    _MATRIX,
    given("bias", "Bias b (chosen here)", [0, 0.1, 0, -0.1, 0, 0], _WORDS),
    whole("target", say("index_right_word"), 1, 0, 5),
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
    sheet.step(say("index_most_probable"), r"\mathrm{arg\,max}_v\; p_v", best)
    sheet.numbers("p_{@} = @", best, shares[best])
    sheet.remark(f"Index {best} is “{_WORDS[best]}”.")
    hot = learning.one_hot(np.array([target]), len(_WORDS))[0]
    sheet.step("One-hot target", r"y_v = 1\ \text{for the right word}", hot, _WORDS)
    sheet.numbers("y = @", hot)
    sheet.remark(f"Index {target} is “{_WORDS[target]}”.")
    before = learning.cross_entropy(logits, hot)
    sheet.step("Loss", r"L = -\sum_v y_v \ln p_v", before)
    sheet.numbers(r"-\ln @ = @", shares[target], before)
    sheet.remark(say("only_probability_right"))
    gradient, formula = shares - hot, r"\frac{\partial L}{\partial \ell_v} = p_v - y_v"
    sheet.step(say("gradient_logits"), formula, gradient, _WORDS)
    sheet.numbers("@ - @", shares, hot)
    sheet.remark(say("back_propagation_starts"))
    after = learning.cross_entropy(logits - rate * gradient, hot)
    title, formula = say("loss_after_step"), r"\ell \leftarrow \ell - \eta\,(p - y)"
    sheet.step(title, formula, (before, after), ("before", "after"))
    sheet.numbers(r"\eta = @:\ @ \to @", rate, before, after)


@worked(
    "§13",
    say("width_vocabulary"),
    say("last_linear_layer"),
    whole("length", "Length", 3, 1, 100_000),
    whole("width", "Width", 512, 1, 16_384),
    whole("vocabulary", "Vocabulary", 10_000, 2, 1_000_000),
)
def to_the_vocabulary(sheet: Sheet, length: int, width: int, vocabulary: int) -> None:
    matrix = (width, vocabulary)
    title = say("shape_output_matrix")
    sheet.step(title, r"d_{\text{model}} \times V", matrix, ("width", "vocabulary"))
    sheet.numbers(latex.shape(matrix))
    logits = (length, vocabulary)
    sheet.step(say("shape_logits"), r"n \times V", logits, ("token", "vocabulary"))
    sheet.numbers(latex.shape(logits))
    sheet.remark(say("every_position_gets"))
    count, formula = width * vocabulary + vocabulary, r"d_{\text{model}} \cdot V + V"
    sheet.step(say("parameters_linear_layer"), formula, count)
    sheet.numbers(r"@ \cdot @ + @ = @", width, vocabulary, vocabulary, count)
    loss = sheet.step(say("loss_model_knows"), r"\ln V", np.log(vocabulary))
    sheet.numbers(r"\ln @ = @", vocabulary, loss)
    sheet.remark(say("equal_probabilities_right"))


@worked(
    "§13",
    say("three_source_tokens"),
    say("time_step_decoder"),
    given("source", say("encoder_output_chosen"), _SENTENCE, _THREE, "dim"),
    given("target", "Vectors of <start>, y1 and y2 (chosen here)", _LAST, _BEGUN, "dim"),
    _MATRIX,
)
def sequence_in_three_steps(
    sheet: Sheet, source: Array64, target: Array64, matrix: Array64
) -> None:
    allowed = attention.causal_mask(3)
    own = attention.attend(target, target, target, allowed=allowed)
    hidden = attention.masked(own.scaled, allowed)
    title = say("step_reads_target")
    sheet.weights(hidden, _TIMES, _BEGUN, row=1, allowed=allowed, title=title)
    sheet.remark(say("1_only_start_token"))
    stream = target + own.output
    cross = attention.attend(stream, source, source)
    sheet.weights(cross.scaled, _TIMES, _THREE, title=say("step_reads_source"))
    final = stream + cross.output
    title = say("vectors_after_both")
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
    sheet.step(say("index_chosen_word"), formula, best, _TIMES)
    sheet.numbers("@", best)
    sheet.remark("Chosen: " + ", ".join(f"“{_WORDS[index]}”" for index in best) + ".")


@worked(
    "§12",
    say("encoder_make_vector"),
    say("takes_mean_tokens"),
    given(
        "tokens",
        say("last_vectors_tokens"),
        [[0.8, 0.1, 0.5], [0.4, 0.9, -0.2], [0.6, 0.2, 0.3], [0.1, -0.7, 0.9]],
        "token",
        "dim",
    ),
    whole("mask", say("1_token_0_padding"), [1, 1, 1, 0], 0, 1, "token"),
    given("other", say("vector_another_sentence"), [0.5, 0.6, 0.1], "dim"),
)
def sentence_vector(sheet: Sheet, tokens: Array64, mask: Array64, other: Array64) -> None:
    count = mask.sum()
    if count == 0:
        raise ValueError("Every token is padding, so there is nothing to take the mean of.")
    total = sheet.step(say("sum_without_padding"), r"\sum_i m_i x_i", mask @ tokens, "dim")
    sheet.numbers(r"\text{token 0: } @,\ \text{sum: } @", tokens[0], total)
    mean = sheet.step("Mean", r"\frac{\sum_i m_i x_i}{\sum_i m_i}", total / count, "dim")
    sheet.numbers(r"\frac{@}{@} = @", total[0], count, mean[0])
    size = float(np.linalg.norm(mean))
    unit = mean / size if size else mean
    sheet.step("Brought to length 1", r"\frac{x}{|x|}", unit, "dim", quantity="output")
    sheet.numbers(r"|x| = @,\ @ \to @", size, mean, unit)
    padded = tokens.mean(axis=0)
    pooled = np.array([learning.cosine(each, other) for each in (mean, tokens[0], padded)])
    names = ("mean", "first token alone", say("mean_padding"))
    sheet.step(say("cosine_other_sentence"), r"\cos(x,\ y)", pooled, names)
    sheet.numbers("@", pooled)
    sheet.remark(say("bert_cls_first_token"))


@worked(
    "§13",
    say("beam_search_beside"),
    say("greedy_takes_most"),
    given("first", say("first_word_chosen"), [0.55, 0.45], ("A", "B"), lowest=0, highest=1),
    given(
        "second",
        say("second_word_after"),
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
    sheet.step(say("probability_sentence"), r"p(w_1)\,p(w_2 \mid w_1)", both, rows, columns)
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
    sheet.step(say("beam_finds"), r"\max_{w_1, w_2}\ p(w_1)\,p(w_2 \mid w_1)", best)
    sheet.numbers(r"@ \cdot @ = @", first[start], second[start, end], best)
    sheet.remark(say("writes_first_words", start_rows=rows[start], end_columns=columns[end]))

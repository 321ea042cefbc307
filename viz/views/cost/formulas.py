"""The LaTeX of what a pass costs, as it is for one model's sizes. Pure.

n: tokens of the text, m: of a decoder that reads a source beside its own; L: layers, h: heads, g: heads of
keys and values where they are fewer.
"""

from model.nn.config import TransformerConfig
from viz.notation.words import sentences_of

say = sentences_of("cost.formulas")

GROWTH = r"\text{cost}(n) = \underbrace{a\, n^2}_{\text{pairs}} + \underbrace{b\, n}_{\text{everything else}}, \qquad n^* = \frac{b}{a}"  # noqa: E501
ATTENTION_SHAPES = (
    r"\underbrace{B \times h \times n \times d_k}_{Q,\,K,\,V} \;\to\;"
    r" \underbrace{B \times h \times n \times n}_{\text{scores, weights}} \;\to\;"
    r" \underbrace{B \times h \times n \times d_k}_{\text{context}}"
)
_GROUPED_SHAPES = ATTENTION_SHAPES.replace(
    r"{Q,\,K,\,V}", r"{Q},\ \underbrace{B \times g \times n \times d_k}_{K,\,V}"
)
_CROSS_SHAPES = (
    r"\underbrace{B \times h \times m \times d_k}_{Q},\ \underbrace{B \times h \times n \times d_k}_{K,\,V}"
    r" \;\to\; \underbrace{B \times h \times m \times n}_{\text{scores, weights}} \;\to\;"
    r" \underbrace{B \times h \times m \times d_k}_{\text{context}}"
)


def attention_shapes(config: TransformerConfig, kind: str) -> str:
    """The shapes on the way through one attention sub-layer. kind: self or cross."""
    if kind == "cross":
        return _CROSS_SHAPES
    return _GROUPED_SHAPES if config.groups_keys else ATTENTION_SHAPES


def parameters(config: TransformerConfig) -> str:
    """The matrices of the whole model; the dots stand for norms, biases and tables of positions."""
    token = _named("V d", "tokens")
    layer = [_named(_projections(config, 1), "attention"), *_feed_forward(config, 1)]
    if config.shape == "encoder-decoder":
        across = [_named(_projections(config, 1), "cross-attention"), *layer]
        stacks = rf"L_e\,({' + '.join(layer)}) \\ &+ L_d\,({' + '.join(across)})"
        summed = rf"&{token} + {stacks}"
    else:
        summed = rf"&{token} + L\,({' + '.join(layer)})"
    if config.decoder_layers and not config.tied:
        summed += " + " + _named("V d", "output")
    return rf"\begin{{aligned}} {summed} + \ldots \end{{aligned}}"


def memory(config: TransformerConfig) -> str:
    """The attention matrices and, where the model generates text, its key–value cache."""
    if config.shape == "encoder-decoder":
        matrices = r"3\, B\, h\, (L_e\, n^2 + L_d\, m^2 + L_d\, m\, n)"
        cache = rf"2\, L_d\, B\, (m + n)\, {_kept(config)}"
    else:
        matrices, cache = r"3\, L\, B\, h\, n^2", rf"2\, L\, B\, n\, {_kept(config)}"
    if config.key_latent:
        cache = r"L\, B\, n\, (r + d_R)"
    found = [_named(matrices, "scores, scaled, weights")]
    if config.decoder_layers:
        found.append(_named(cache, "key–value cache"))
    return r" \qquad ".join(found)


def operations(config: TransformerConfig) -> str:
    """The matrix products of one layer for one sequence, and the step to the vocabulary."""
    if config.shape == "encoder-decoder":
        across = rf"4\, m\, d\, {_read(config)} + 4\, n\, d\, {_kept(config)} + 4\, m\, n\, {_read(config)}"
        lines = [
            rf"\text{{encoder layer: }} &{_on_lines(_layer(config, 'n'))}",
            rf"\text{{decoder layer: }} &{_on_lines(_layer(config, 'm'))}",
            rf"&+ {_named(across, 'cross-attention')}",
            _at_the_end("m"),
        ]
    else:
        lines = [rf"\text{{a layer: }} &{_on_lines(_layer(config, 'n'))}"]
        if config.decoder_layers:
            lines.append(_at_the_end("n"))
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def _on_lines(terms: list[str]) -> str:
    """A sum with two terms on its first line and the others below: the column beside a picture is narrow."""
    first = " + ".join(terms[:2])
    return r" \\ &+ ".join([first, *terms[2:]])


def _at_the_end(length: str) -> str:
    logits = _named(rf"2\, {length}\, d\, V", "logits")
    return rf"\text{{at the end: }} &{logits}"


def _layer(config: TransformerConfig, length: str) -> list[str]:
    pairs = rf"4\, {length}^2\, {_read(config)}"
    if config.value_size:
        pairs = rf"2\, {length}^2\, h\, (d_k + d_v)"
    return [
        _named(_projections(config, 2, length), "projections"),
        rf"\underbrace{{{pairs}}}_{{QK^\top,\ AV}}",
        *_feed_forward(config, 2, length),
    ]


def head_width(config: TransformerConfig) -> str:
    if config.head_size:
        return rf"d_k = {config.head_size}, \qquad h\, d_k = {config.heads * config.head_size}"
    found = rf"d_k = \frac{{d}}{{h}} = \frac{{{config.d_model}}}{{{config.heads}}} = {config.head_width}"
    if not config.groups_keys:
        return found
    kept = config.key_head_count * config.head_width
    return rf"{found}, \qquad g\, d_k = {config.key_head_count} \cdot {config.head_width} = {kept}"


def letters(config: TransformerConfig) -> str:
    """What the letters of experts and latent vectors stand for, in this model; "" without any."""
    said = []
    if config.experts:
        said.append(
            say(
                "e_experts_k_read",
                experts=config.experts,
                experts_read=config.experts_read,
                d_expert=config.d_expert,
            )
        )
    if config.d_shared:
        said.append(say("neurons_read_every", d_shared=config.d_shared))
    if config.dense_layers:
        said.append(say("first_layers_ff", dense_layers=config.dense_layers, d_mlp=config.d_mlp))
    if config.key_latent:
        said.append(
            say(
                "keys_values_made",
                key_latent=config.key_latent,
                turned_key=config.turned_key,
                value_width=config.value_width,
            )
        )
    if config.query_latent:
        said.append(say("queries_made_r_q", query_latent=config.query_latent))
    return "; ".join(said) and f"Here {'; '.join(said)}."


def _named(latex: str, name: str) -> str:
    return rf"\underbrace{{{latex}}}_{{\text{{{name}}}}}"


def _read(config: TransformerConfig) -> str:
    """The width of all heads side by side."""
    return r"h\, d_k" if config.head_size else "d"


def _kept(config: TransformerConfig) -> str:
    """The width of all heads of keys and values side by side."""
    return r"g\, d_k" if config.groups_keys else _read(config)


def _projections(config: TransformerConfig, times: int, length: str = "") -> str:
    """W_Q, W_K, W_V and W_O; times 2 where products and sums are counted."""
    read = rf"{length}\, " if length else ""
    if config.key_latent:
        wide = r"(d + h\, d_k)\, r_Q" if config.query_latent else r"d\, h\, d_k"
        up = r"r\, h\, (d_k - d_R + d_v)"
        counted = rf"({wide} + d\, (r + d_R) + {up} + d\, h\, d_v)"
        return (rf"{times}\, {read}" if times > 1 or length else "") + counted
    if config.groups_keys:
        return rf"{2 * times}\, {read}d\, (h + g)\, d_k"
    return rf"{4 * times}\, {read}" + (r"d\, h\, d_k" if config.head_size else "d^2")


def _feed_forward(config: TransformerConfig, times: int, length: str = "") -> list[str]:
    """The maps of the feed-forward, three with a gate; nothing where there is none."""
    read = rf"{length}\, " if length else ""
    maps = 3 if config.is_gated else 2
    if not config.experts:
        plain = _named(rf"{maps * times}\, {read}d\, d_{{\text{{ff}}}}", "feed-forward")
        return [plain] if config.d_mlp else []
    met = "k" if length else "E"
    each = rf"({met}\, d_e + d_s)" if config.d_shared else rf"{met}\, d_e"
    router = rf"{times if times > 1 else ''}\, {read}d\, E"
    return [_named(rf"{3 * times}\, {read}d\, {each} + {router}", "experts, router")]

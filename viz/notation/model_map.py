"""The blocks of a model in the order in which a token goes through them, read off its config."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Literal

from cachetools import LRUCache, cached

from model.nn.config import ProvenPart, Stack, TransformerConfig
from model.nn.places import TokenPart as PlaceOnTheMap
from viz.notation.words import sentences_of

say = sentences_of("notation.model_map")

BlockKind = PlaceOnTheMap | Literal["next_token"]


@dataclass(frozen=True)
class MapBlock:
    """One block: its kind, its name on the map, its formula in plain text, and the shape of its result.

    In shapes, n is the number of tokens that the stack reads, and m those of the encoder.
    """

    kind: BlockKind
    name: str
    formula: str
    shape: str


@dataclass(frozen=True)
class Rail:
    """One stack of the model: what stands before its layers, in each of them, and after them."""

    stack: Stack
    before: tuple[MapBlock, ...]
    layer: tuple[MapBlock, ...]
    layers: int
    after: tuple[MapBlock, ...]

    @property
    def blocks(self) -> tuple[MapBlock, ...]:
        """All blocks, those of a layer once."""
        return self.before + self.layer + self.after


_SHOWING: dict[BlockKind, ProvenPart] = {
    "norm": "norms",
    "add": "stream",
    "logits": "logits",
    "next_token": "logits",
}


@cached(
    LRUCache(64),
    key=lambda config, unproven=(): (config, frozenset(unproven)),
    lock=Lock(),
)
def rails(config: TransformerConfig, unproven: Collection[ProvenPart] = ()) -> tuple[Rail, ...]:
    """One rail for each stack; of an encoder–decoder the encoder comes first. Blocks of parts that are not
    proven are left out."""
    left_out = {kind for kind, part in _SHOWING.items() if part in unproven}

    def known(blocks: Iterator[MapBlock]) -> tuple[MapBlock, ...]:
        return tuple(block for block in blocks if block.kind not in left_out)

    depths: dict[Stack, int] = {
        "encoder": config.encoder_layers,
        "decoder": config.decoder_layers,
    }
    return tuple(
        Rail(
            stack,
            before=known(_before(config)),
            layer=known(_layer(config, stack)),
            layers=layers,
            after=known(_after(config, stack)),
        )
        for stack, layers in depths.items()
        if layers
    )


def _before(config: TransformerConfig) -> Iterator[MapBlock]:
    factor = "√d_model · " if config.scaled_embedding else ""
    yield MapBlock("tokens", "tokens", say("text_pieces_id"), "n")
    yield _vectors(config, "vectors", "vectors", say("x_e_id_row_token", factor=factor))
    if config.adds_positions:
        yield _vectors(config, "positions", "+ positions", say("x_p_vector_position"))
    if config.embedding_norm:
        yield _norm(config)


def _layer(config: TransformerConfig, stack: Stack) -> Iterator[MapBlock]:
    """The blocks of one layer, in order."""
    sub_layers = list(_sub_layers(config, stack))
    if config.parallel:  # all read the same vector, and one sum takes up their results
        for number, sub_layer in enumerate(sub_layers):
            if number == 0 or not config.shared_norm:
                yield _norm(config)
            yield sub_layer
        yield _add(config, len(sub_layers))
        return
    for sub_layer in sub_layers:
        if config.norms_input:
            yield _norm(config)
        yield sub_layer
        if config.norms_output:
            yield _norm(config)
        yield _add(config)
        if config.norms_sum:
            yield _norm(config)


def _sub_layers(config: TransformerConfig, stack: Stack) -> Iterator[MapBlock]:
    divided = "/√d_k" if config.scaled_scores else ""
    mask = " + B" * config.biases_positions + " + M" * (stack == "decoder")
    turned = say("q_k_rotated_position") if config.turns_positions else ""
    yield _vectors(config, "attention", "attention", f"softmax(QKᵀ{divided}{mask}) V · W_O{turned}")
    if stack == "decoder" and config.encoder_layers:
        formula = say("softmax_qk_v_w_o", divided=divided)
        yield _vectors(config, "cross", "cross-attention", formula)
    if config.experts:
        formula = say("w_e_e_e_x_over_few", experts=config.experts)
        yield _vectors(config, "feed_forward", "experts", formula)
    elif config.d_mlp:
        formula = "(f(x W_gate) ⊙ x W_in) W_out" if config.is_gated else "f(x W_in) W_out"
        yield _vectors(config, "feed_forward", "feed-forward", formula)


def _after(config: TransformerConfig, stack: Stack) -> Iterator[MapBlock]:
    if not config.norms_sum:
        yield _norm(config)
    if stack == "encoder":
        kind: BlockKind = "memory" if config.decoder_layers else "vectors"
        name = "memory" if config.decoder_layers else "output vectors"
        yield _vectors(config, kind, name, say("vector_token_context"))
        return
    words = f"{config.d_vocab:,}"
    yield MapBlock("logits", "logits", say("x_w_u_logit_token"), f"n × {words}")
    yield MapBlock("next_token", "next token", say("softmax_logits_last"), words)


def _norm(config: TransformerConfig) -> MapBlock:
    law, shift = config.norm_law, " + β" if config.shifts else ""
    return _vectors(config, "norm", law.in_map, f"γ ⊙ {law.in_text}{shift}")


def _add(config: TransformerConfig, results: int = 1) -> MapBlock:
    added = " + ".join(["x", *("f(x)", "g(x)")[:results]])
    return _vectors(config, "add", "+", say("into_residual_stream", added=added))


def _vectors(config: TransformerConfig, kind: BlockKind, name: str, formula: str) -> MapBlock:
    """A block that leaves one vector a token."""
    return MapBlock(kind, name, formula, f"n × {config.d_model}")

"""Proves a model of Hugging Face's library and makes it one of ours, wherever its weights lie.

What each part does is read from one pass. The library's own eager attention runs the same text, and its
weights must be equal to ours: where they are not, the model is refused with a sentence. Every other part is
proven by itself, and one that is not says why wherever it would be shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.analysis.stream.stream import (
    contribution_check,
    contributions,
    embedding_norm,
    weight_and_bias,
)
from model.arithmetic.sizes import parameter_parts
from model.hub.anatomy import anatomy
from model.hub.attention import NAME, carries_a_state, register
from model.hub.config import config_of, uneven
from model.hub.hooks import rotary_pairs
from model.hub.id_tokenizer import IdTokenizer
from model.hub.inline_attention import adapt, lead_inline, reference_mended, unadapted
from model.hub.lengths import CROSSED, SHARE, named_lengths
from model.hub.module import HubTransformer
from model.hub.parts import headless, run, writes_logits
from model.hub.probe import Probe, near, probe
from model.hub.tokenizer import HubTokenizer, encoded, first_line, isolated, languages_of
from model.hub.twin import set_attention
from model.nn.config import ProvenPart, Reasons, Shape
from model.nn.intervention import Intervention
from model.nn.layers import segments_of
from model.nn.places import Place
from model.run.model import Model
from model.run.tokenizers import Tokenizer
from model.system.memory import is_out_of_memory
from model.trace.arrays import Array
from model.trace.collect import array_of
from model.trace.records import largest
from model.trace.trace import Trace
from model.trace.unproven import WORDS, UnprovenError

WEIGHTS = 1e-4  # largest difference of an attention weight
RECORDS = 1e-2  # largest difference of a record from its own formula


@dataclass(frozen=True, eq=False)
class Reference:
    """The result of the library's eager attention on a text."""

    source: Tensor  # (1, S) ids
    target: Tensor | None  # (1, T) ids of the decoder's input in an encoder–decoder
    weights: dict[Place, tuple[Tensor, ...]]  # of any layer -> (1, H, T, S) of each
    result: Tensor  # logits, or an encoder's last state

    @property
    def layers(self) -> int:
        """How many attention layers the library hands out weights of."""
        return sum(map(len, self.weights.values()))


@dataclass(frozen=True)
class Checked:
    """What is not proven and why, and the factor of the logits."""

    unproven: Reasons
    logit_factor: float


def check(model: Model, reference: Reference) -> Checked:
    """Compares our pass with the reference, and its records with each other.

    Raises ValueError, with a sentence, where attention is not proven.
    """
    trace, result = traced(model, reference, Intervention())
    _same_weights(trace, reference)
    if not largest(attention.check() for attention in trace.attention) <= RECORDS:
        raise ValueError("the outputs of its attention are not what its weights and values give")
    unproven: dict[ProvenPart, str] = dict(model.unproven)
    found: dict[ProvenPart, float | None] = {}
    proofs: tuple[tuple[ProvenPart, tuple[ProvenPart, ...], Callable[[], float | None]], ...] = (
        ("logits", (), lambda: _near(result, array_of(reference.result), "its logits")),
        ("norms", (), lambda: _normed(trace)),
        ("stream", (), lambda: _add_up(model, trace)),
        ("embedding", ("stream", "norms"), lambda: _starts(trace)),
        ("unembedding", ("stream", "logits"), lambda: _unembeds(model, trace)),
        ("logit_parts", ("norms", "stream", "logits"), lambda: _linear(model, trace)),
        ("positions", (), lambda: _forgets_positions(model, reference)),
        ("sizes", (), lambda: _follows(model)),
    )
    for part, needs, proof in proofs:
        try:
            lacking = next((other for other in needs if other in unproven), None)
            if lacking is not None and part not in unproven:
                raise ValueError(f"that needs {WORDS[lacking]}, and {unproven[lacking]}")
            if part not in unproven:
                found[part] = proof()
        except UnprovenError as error:
            unproven[part] = f"that needs {WORDS[error.part]}, and {unproven[error.part]}"
        except ValueError as reason:
            unproven[part] = str(reason)
    return Checked(unproven, found.get("logit_parts") or 1.0)


def traced(model: Model, reference: Reference, intervention: Intervention) -> tuple[Trace, Array]:
    """A pass over the reference's ids, and its result."""
    tokens = model.tokenizer.named(reference.source[0].tolist())
    given = [] if reference.target is None else reference.target[0].tolist()
    return model.passed(tokens, model.tokenizer.named(given), intervention, record="full")


def _same_weights(trace: Trace, reference: Reference) -> None:
    expected = {
        replace(place, layer=layer).name: array_of(weights)
        for place, layers in reference.weights.items()
        for layer, weights in enumerate(layers)
    }
    found = {attention.name: attention for attention in trace.attention}
    if len(found) > len(expected):
        raise ValueError(
            f"its {len(expected)} attention layers attend {len(found)} times: some do so more than once, "
            "as in differential attention"
        )
    if expected.keys() != found.keys():
        raise ValueError(
            f"{len(expected.keys() & found.keys())} of its {len(expected)} attention layers go through "
            "the library's interface"
        )
    for name, weights in expected.items():
        cells = found[name].heads, found[name].query.shape[1], found[name].key.shape[1]
        if weights.shape != cells:
            raise ValueError(
                f"{name} has {cells[0]} heads that weigh {cells[2]} keys for {cells[1]} queries, but the "
                f"library hands out weights for {' × '.join(map(str, weights.shape))}"
            )
        for head in range(found[name].heads):
            apart = float(np.abs(found[name].weights(head) - weights[head]).max())
            if not apart <= WEIGHTS:
                raise ValueError(
                    f"the weights of {name}, head {head}, differ from the library's own by {apart:.1g}"
                )


def _near(ours: Array, theirs: Array, what: str) -> None:
    if ours.shape != theirs.shape:
        raise ValueError(f"{what} would not have the sizes of the library's own")
    size = max(float(np.abs(theirs).max()), 1.0)
    apart = float(np.abs(ours - theirs).max())
    if not apart <= SHARE * size:
        raise ValueError(f"{what} would differ from the library's own by {apart:.1g}")


def _normed(trace: Trace) -> None:
    if not largest(norm.check() for norm in trace.norms) <= RECORDS:
        raise ValueError("its norms do not give what their formulas give")


def _add_up(model: Model, trace: Trace) -> None:
    """State + output of the sub-layer = next state."""
    for stack in trace.stacks:
        given = contributions(model, trace, stack)
        size = max(float(np.abs(part.added).max()) for part in given)
        apart = contribution_check(model, trace, given)
        if not apart <= SHARE * max(size, 1.0):
            raise ValueError(
                f"what its sub-layers write does not add up to the stream of its {stack}, by {apart:.1g}"
            )


def _starts(trace: Trace) -> None:
    """The first state is the sum of the embeddings, or a norm of that sum."""
    for stack in trace.stacks:
        norm = embedding_norm(trace, stack)
        total = np.asarray(sum(trace.summands[stack].values()))
        started = total if norm is None else norm.output
        if started.shape[-1] != trace.residual[stack][0].shape[-1]:
            raise ValueError(f"a map stands between the embeddings and the layers of its {stack}")
        if norm is not None:
            _near(total, norm.input, f"the sum of the embeddings of its {stack}")
        _near(
            np.broadcast_to(started, trace.residual[stack][0].shape),
            trace.residual[stack][0],
            f"the sum of the embeddings of its {stack}",
        )


def _unembeds(model: Model, trace: Trace) -> None:
    if trace.logits is not None:
        try:
            unembedded = model.unembed(trace.residual["decoder"][-1])
        except (TypeError, AttributeError, RuntimeError) as error:
            raise ValueError(
                "the library's own code for its logits cannot be run without its layers"
            ) from error
        _near(unembedded, trace.logits, "its last state through the output matrix")


def _linear(model: Model, trace: Trace) -> float:
    """The factor in logits = factor · (output matrix · last state). Raises ValueError where this does not
    hold."""
    if trace.logits is None:
        return 1.0
    # (token, vocabulary): the output matrix times the last state, normed.
    final = Place("decoder", None, "final").norm
    norms = {norm.name: norm.output for norm in trace.norms}
    weight, bias = weight_and_bias(model.module.output or model.module.embedding.tokens)
    ended = norms.get(final, trace.residual["decoder"][-1])
    if ended.shape[-1] != weight.shape[-1]:
        raise ValueError("a map stands between its last state and the output matrix")
    plain = np.asarray(ended @ weight.T + bias)
    measured = float((plain * trace.logits).sum() / max(float(np.square(plain).sum()), 1e-12))
    for factor in (1.0, measured):
        if np.abs(factor * plain - trace.logits).max() <= SHARE * max(np.abs(plain).max(), 1.0):
            return factor
    raise ValueError(
        "its logits are more than the output matrix times the last state: a cap, for instance, follows"
    )


def _follows(model: Model) -> None:
    """The parameters that follow from the sizes of the config are all that there are."""
    config = model.config
    listed = parameter_parts(config) | model.module.extra_parameters()
    counted = model.parameter_count
    if sum(listed.values()) != counted:
        raise ValueError(f"its {counted:,} parameters do not follow from the sizes of its layers")


def _forgets_positions(model: Model, reference: Reference) -> None:
    """Without positions and masks, a reversed text must give the same states in reverse order.

    A model with another mask, one of chunks for instance, is not checked.
    """
    intervention = Intervention(positions=False, bias=False, mask="none")
    turned = replace(
        reference,
        source=reference.source.flip(1),
        target=None if reference.target is None else reference.target.flip(1),
    )
    forwards, last = traced(model, reference, intervention)
    _, other = traced(model, turned, intervention)
    if any(attention.mask is not None for attention in forwards.attention):
        return
    other = other[::-1]
    if not float(np.abs(last - other).max()) <= SHARE * max(float(np.abs(last).max()), 1.0):
        raise ValueError("positions reach its scores in a way that cannot be switched off")


TEXT = "The cat saw the dog, and the dog saw the cat on the mat."
FEWEST = 4  # tokens of the probe
ROUNDING = 1e-2  # of the sum of a row of weights, in any precision
LANGUAGES_KEPT = 4  # pairs of languages whose tokenizers are kept
WITHOUT_WORDS = 16  # tokens of the probe of a model without a tokenizer


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model of the library with eager attention, before it is proven."""

    name: str
    body: Any
    shape: Shape
    source: Tensor  # (1, S) ids of a test text
    target: Tensor | None  # (1, T) ids of another length, for the decoder of two stacks
    separator: int = 0  # between the sentences of a pair; 0: it reads none

    def on(self, device: torch.device) -> "Candidate":
        """The same with its test text on a device."""
        target = None if self.target is None else self.target.to(device)
        return replace(self, source=self.source.to(device), target=target)

    def eager(self) -> Reference:
        """The result of the library's own attention on the test text, with the model as it is now."""
        return _reference(self.body, self.shape, self.source, self.target)

    def run(self) -> tuple[Any, Tensor]:
        """One pass over the test text, and its result."""
        return run(self.body, self.shape, self.source, self.target)

    def probed(self) -> Probe:
        """One pass over the test text, part by part."""
        target = 0 if self.target is None else self.target.shape[1]
        return probe(self.body, self.run, source=self.source.shape[1], target=target)


TokenizerPair = tuple[Tokenizer, Tokenizer]  # of the text, and of what a decoder reads beside it


def candidate_of(
    name: str, body: Any, shape: Shape, tokenizer: Any, template: str | None = None
) -> tuple[Candidate, TokenizerPair]:
    """A model and its tokenizers.

    Args:
        body: the library's model.
        tokenizer: the library's; None: texts are written as ids.
        template: how it wraps a chat.

    Raises ValueError where the tokenizer does not fit the model.
    """
    rows = body.get_input_embeddings().weight.shape[0]
    ids = [(7 * place + place // 3) % rows for place in range(1, 1 + WITHOUT_WORDS)]
    if tokenizer is not None:
        ids = [int(id_) for id_ in encoded(tokenizer, TEXT)]
    body, shape = _by_attention(body, shape, _test_text(ids, body, shape, None, rows)[0])
    start, end = _bounds(body, tokenizer, shape)
    reads: TokenizerPair = (IdTokenizer(rows, start, end),) * 2
    if tokenizer is not None:
        reads = _readers(body, tokenizer, (start, end), template)
    source, target = _test_text(ids, body, shape, start, rows)
    separator = 0 if tokenizer is None else _separator(body, tokenizer)
    return Candidate(name, body, shape, source, target, separator), reads


def _by_attention(body: Any, shape: Shape, source: Tensor) -> tuple[Any, Shape]:
    """What a model of one stack is by the library's own attention: a decoder if no token reads a later one,
    and else an encoder, whose last states are shown. Its config says neither: a Llama may read both ways."""
    if shape == "encoder-decoder":
        return body, shape
    (handed,) = _reference(body, shape, source, None).weights.values()
    if not any(bool(one.triu(1).any()) for one in handed):
        return body, "decoder"
    return body.base_model, "encoder"


def prove(
    candidate: Candidate,
    tokenizer: Tokenizer,
    target: Tokenizer,
    *,
    borrowed: bool = False,
    unused: Sequence[str] = (),
) -> tuple[Model, Reference]:
    """The model, and what the library's eager attention gives.

    Args:
        tokenizer: of the text.
        target: of a decoder's own text.
        borrowed: the weights belong to somebody else.
        unused: tensors of the files that the library leaves out.

    Raises ValueError, with the reason, for a model whose attention cannot be shown truly.
    """
    reference = candidate.eager()
    try:
        model = _proven(candidate, reference, tokenizer, target, borrowed=borrowed, unused=unused)
        return model, reference
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError) as error:
        if is_out_of_memory(error):
            raise
        raise ValueError(
            f"the parts of {type(candidate.body).__name__} do not fit together in a way that this app knows"
        ) from error


def _proven(
    candidate: Candidate,
    reference: Reference,
    tokenizer: Tokenizer,
    target: Tokenizer,
    *,
    borrowed: bool,
    unused: Sequence[str],
) -> Model:
    body, shape = candidate.body, candidate.shape
    register()
    set_attention(body, NAME)
    adapt(body)
    found = candidate.probed()
    if len(found.attended) < reference.layers:
        known = [event.module for event in found.attended]
        ids = [one for one in (candidate.source, candidate.target) if one is not None]
        unread = lead_inline(body, candidate.run, ids, known)
        found = candidate.probed()
        if len(found.attended) < reference.layers:
            raise ValueError(
                unread
                or f"{reference.layers - len(found.attended)} of its {reference.layers} attention layers do "
                "not compute softmax(queries · keys) · values over the whole text at once"
            )
        _same_in_rows(candidate, reference)
    parts = anatomy(body, found, shape)
    turned = rotary_pairs(parts.rotary, found, candidate.probed)
    lacking: dict[ProvenPart, str] = dict(parts.unproven)
    if (reason := uneven(parts, found)) is not None:
        lacking["sizes"] = reason
    if shape != "encoder" and not writes_logits(body):
        lacking["logits"] = headless(body)
    parts = replace(parts, unproven=lacking)
    config = config_of(parts, body, turned, found, candidate.separator)
    module = HubTransformer(body, parts, config, (candidate.source, candidate.target), unused)
    model = Model(
        candidate.name,
        module,
        tokenizer,
        candidate.source.device,
        target_tokenizer=target,
        borrowed=borrowed,
    )
    module.rereads = shape == "encoder-decoder" and _rereads(body, candidate.source)
    checked = check(model, reference)
    module.unproven, module.logit_factor = checked.unproven, checked.logit_factor
    return model


def _same_in_rows(candidate: Candidate, reference: Reference) -> None:
    """Raises ValueError where a text beside another one does not give what it gives alone."""
    source = torch.cat([candidate.source, candidate.source.flip(1)])
    target = None if candidate.target is None else candidate.target.expand(2, -1)
    with torch.inference_mode():
        _, both = run(candidate.body, candidate.shape, source, target)
    if not near(both[:1], reference.result):
        raise ValueError("a text that is read beside another one gives other numbers than alone")


def _rereads(body: Any, source: Tensor) -> bool:
    """Whether the library's decoder reads the text itself where it is given no other one and writes none."""
    if writes_logits(body):
        return False
    try:
        with torch.inference_mode():
            body(input_ids=source)
    except ValueError:  # it asks for the decoder's ids
        return False
    return True


def _readers(
    body: Any,
    tokenizer: Any,
    bounds: tuple[int | None, int | None],
    template: str | None,
    languages: tuple[str, str] | None = None,
) -> tuple[HubTokenizer, HubTokenizer]:
    """The tokenizers of a text and of what a decoder reads beside it.

    bounds: the token that the latter begins with by the model's config, and the one that ends it. languages:
    of both texts; None: those of the files.
    """
    rows, (start, end) = body.get_input_embeddings().weight.shape[0], bounds
    source = tokenizer if languages is None else isolated(tokenizer, source=languages[0])
    target, behind_end, known = tokenizer, 0, {}
    if start is not None and hasattr(tokenizer, "_switch_to_target_mode"):
        language = _target_language(body, tokenizer) if languages is None else languages[1]
        target = isolated(tokenizer, target=language)
        labels = encoded(target, "")
        if end in labels:
            behind_end = labels[::-1].index(end)
        if behind_end and hasattr(body, "prepare_decoder_input_ids_from_labels"):
            start = int(body.prepare_decoder_input_ids_from_labels(torch.tensor([labels]))[0, 0])
        known = {code: id_ for code, id_ in languages_of(tokenizer).items() if id_ < rows}
    common = {"start": start, "end": end, "rows": rows}
    reader = HubTokenizer(source, **common, template=template)
    reader.languages, reader.language = known, getattr(source, "src_lang", "")
    reader.in_languages = lru_cache(LANGUAGES_KEPT)(
        lambda *chosen: _readers(body, tokenizer, bounds, template, chosen)
    )
    writer = HubTokenizer(target, **common, behind_end=behind_end)
    writer.language = getattr(target, "tgt_lang", "")
    return reader, writer


def _target_language(body: Any, tokenizer: Any) -> str:
    """The language of a multilingual translator's targets: that of its tokenizer, else the one that it writes
    by its settings, else that of the text; "" for any other model."""
    languages = {id_: code for code, id_ in languages_of(tokenizer).items()}
    if not languages:
        return ""
    written = [
        getattr(settings, name, None)
        for settings in (getattr(body, "generation_config", None), body.config)
        for name in ("forced_bos_token_id", "decoder_start_token_id")
    ]
    named = (languages[id_] for id_ in written if id_ in languages)
    return str(tokenizer.tgt_lang or next(named, tokenizer.src_lang))


def _bounds(body: Any, tokenizer: Any, shape: Shape) -> tuple[int | None, int | None]:
    """The token that a decoder's text begins with, and the one that ends it."""
    start = end = None
    for settings in (getattr(body, "generation_config", None), body.config):
        if shape == "encoder-decoder" and start is None:
            start = getattr(settings, "decoder_start_token_id", None)
        given = getattr(settings, "eos_token_id", None)
        if isinstance(given, list):
            given = given[0] if given else None
        end = given if end is None else end
    if shape == "encoder-decoder" and start is None:
        raise ValueError("its config names no token that begins the decoder's text")
    if end is None and tokenizer is not None:
        end = tokenizer.eos_token_id
    return start, None if shape == "encoder" else end


def _separator(body: Any, tokenizer: Any) -> int:
    """The token that makes a pair of sentences where it is written between them: with the ids and the token
    types of the library's pairs. 0 where there is none."""
    first, _, second = TEXT.partition(", ")
    token = tokenizer.sep_token
    has_types = (getattr(body.config, "type_vocab_size", None) or 0) > 1
    if token is None or not has_types or "token_type_ids" not in signature(body.forward).parameters:
        return 0
    both = tokenizer(first, second)
    ids = torch.tensor(both["input_ids"])
    separator = int(tokenizer.sep_token_id)
    is_pair = encoded(tokenizer, f"{first} {token} {second}") == both["input_ids"]
    ours = segments_of(ids, separator).tolist()
    return separator if is_pair and ours == both.get("token_type_ids") else 0


def _test_text(
    ids: list[int], body: Any, shape: Shape, start: int | None, rows: int
) -> tuple[Tensor, Tensor | None]:
    """The ids of a test text (1, S), and others (1, T) of another length for the decoder of two stacks."""
    if max(ids, default=rows) >= rows:
        raise ValueError(f"its tokenizer has more tokens than the {rows:,} that the model knows")
    longest = getattr(body.config, "max_position_embeddings", None)
    crossed = [one for one in named_lengths(body.config.to_dict()).values() if one < CROSSED]
    ids = [ids[at % len(ids)] for at in range(max(len(ids), *(one + 2 for one in crossed), 0))]
    if isinstance(longest, int) and longest > 0:  # XLNet, which has no limit, says -1
        ids = ids[: max(longest - 2, 1)]
    if len(ids) < FEWEST:
        raise ValueError(
            f"a test text of {FEWEST} tokens is needed to check it, and it reads "
            f"{longest} positions at most"
        )
    device = body.get_input_embeddings().weight.device
    source = torch.tensor([ids], device=device)
    if shape != "encoder-decoder" or start is None:
        return source, None
    return source, torch.tensor([[start, *ids[: len(ids) - 3]]], device=device)


def _reference(body: Any, shape: Shape, source: Tensor, target: Tensor | None) -> Reference:
    """The result of the library's eager attention on the test text."""
    try:
        with torch.inference_mode(), unadapted(body), reference_mended(body):
            passed, result = run(body, shape, source, target, output_attentions=True)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise ValueError(
            f"Hugging Face's library cannot run it, and says “{first_line(error)}”"
        ) from error
    weights: dict[Place, tuple[Tensor | None, ...] | None]
    if shape == "encoder-decoder":
        weights = {
            Place("encoder", None, "self"): passed.encoder_attentions,
            Place("decoder", None, "self"): passed.decoder_attentions,
            Place("decoder", None, "cross"): passed.cross_attentions,
        }
    else:
        weights = {Place(shape, None, "self"): passed.get("attentions")}
    without = [kind.stack for kind, found in weights.items() if found == ()]
    if without:
        if not any(isinstance(part, nn.ModuleList) and len(part) for part in body.modules()):
            raise ValueError("it has no layers")
        raise ValueError(carries_a_state(body) or f"no layer of its {without[0]} has attention")
    handed = {
        kind: [one for one in found or () if one is not None] for kind, found in weights.items()
    }
    if not all(handed.values()):
        raise ValueError(
            carries_a_state(body)
            or "the library does not hand out its attention weights, so this app's cannot be checked"
        )
    known = {kind: tuple(filter(_are_weights, found)) for kind, found in handed.items()}
    if not all(known.values()):
        raise ValueError(
            carries_a_state(body)
            or "what the library hands out as its attention weights are other numbers: they are not rows "
            "that sum to 1"
        )
    return Reference(source, target, known, result)


def _are_weights(handed: Tensor) -> bool:
    """Whether the rows of a tensor may be those of a softmax. MiniMax hands out the states of its layers
    without attention beside them."""
    if handed.ndim != 4:
        return False
    return bool((handed >= 0).all() and (handed.sum(-1) <= 1 + ROUNDING).all())

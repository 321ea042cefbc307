"""Models with random weights: classes of the notes give what PyTorch's modules give for the same weights."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model import Model, Trace, load_model, models
from model.code import checked_difference, listing
from model.code.script import printed
from model.loading.random_weights import with_random_weights
from model.loading.registry import may_be_linked, untrained, untrained_models
from model.loading.untrained import OF_THE_NOTES, UNTRAINED, UNTRAINED_BY_NAME, untrained_bytes
from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from model.system.settings import settings
from tests.cases import cases
from tests.model.code.test_listing import run_listing
from tests.model.nn.test_references import pytorchs_names, seeded_weights
from tests.model.tiny import SENTENCE, TARGET, WORDS, closed_tokenizer

NAMES = tuple(UNTRAINED_BY_NAME)
CLASSES = tuple(model.entry.name for model in OF_THE_NOTES)
WITH_FEED_FORWARD = [name for name in CLASSES if UNTRAINED_BY_NAME[name].config.d_mlp]
BIG = "notes-gpt-124m"
CLOSE = 1e-5


@cache
def shallow(name: str) -> Model:
    """A model of the notes in its own width, with few words, at most two layers of each stack, and every
    weight random: norms and biases too."""
    own = UNTRAINED_BY_NAME[name].config
    layers = {stack: min(getattr(own, stack), 2) for stack in ("encoder_layers", "decoder_layers")}
    config = replace(own, d_vocab=len(WORDS), n_ctx=16, **layers)
    module = seeded_weights(Transformer(config))
    for weight in module.parameters():
        weight.data /= 0.3 * max(1.0, weight.shape[-1] ** 0.5) if weight.ndim > 1 else 1.0
    return Model(name, module, closed_tokenizer())


def trace_of(model: Model) -> Trace:
    target = TARGET if model.config.shape == "encoder-decoder" else None
    return model.trace(SENTENCE, target, record="full")


def read_by(model: Model, trace: Trace, name: str) -> Tensor:
    """What a sub-layer's queries are made from, as it was recorded: a norm's output, or the stream."""
    norms = {norm.name: norm.output for norm in trace.norms}
    attention = trace.find(name)
    if model.config.norm_place == "pre":
        return torch.tensor(norms[f"{name}.norm"])[None]
    kinds = ["self", "cross", "feed_forward"]
    if attention.stack == "encoder" or model.config.shape != "encoder-decoder":
        kinds.remove("cross")
    kind = "cross" if attention.kind == "cross" else "self"
    state = len(kinds) * attention.layer + kinds.index(kind)
    return torch.tensor(trace.residual[attention.stack][state])[None]


@cases("name", CLASSES)
def test_each_attention_is_pytorchs_module_with_the_same_weights(name) -> None:
    torch.manual_seed(0)
    model = shallow(name)
    trace, config = trace_of(model), model.config
    state = model.module.state_dict()
    for record in trace.attention:
        kind = "cross" if record.kind == "cross" else "self"
        ours = f"{record.stack}.blocks.{record.layer}.{kind}_attention"
        theirs = nn.MultiheadAttention(config.d_model, config.heads, batch_first=True).eval()
        theirs.load_state_dict(in_one(state, ours, config.d_model))
        x = read_by(model, trace, record.name)
        source = torch.tensor(trace.residual["encoder"][-1])[None] if kind == "cross" else x
        n = x.shape[1]
        future = torch.ones(n, n, dtype=torch.bool).triu(1) if record.kind == "causal" else None
        with torch.inference_mode():
            result, weights = theirs(
                x, source, source, attn_mask=future, average_attn_weights=False
            )
            own = model.layer(record.name).output(
                torch.tensor(record.output).transpose(0, 1).flatten(1)
            )
        np.testing.assert_allclose(own, result[0], atol=CLOSE, rtol=CLOSE)
        for head in range(record.heads):
            np.testing.assert_allclose(record.weights(head), weights[0, head], atol=CLOSE)


def in_one(state: dict[str, Tensor], ours: str, width: int) -> dict[str, Tensor]:
    """The weights of one of our attention layers under PyTorch's names; zeros where it has no biases."""
    maps = [state[f"{ours}.{letter}.weight"] for letter in ("query", "key", "value")]
    none = torch.zeros(width)
    shifts = [state.get(f"{ours}.{letter}.bias", none) for letter in ("query", "key", "value")]
    return {
        "in_proj_weight": torch.cat(maps),
        "in_proj_bias": torch.cat(shifts),
        "out_proj.weight": state[f"{ours}.output.weight"],
        "out_proj.bias": state.get(f"{ours}.output.bias", none),
    }


@cases("name", WITH_FEED_FORWARD)
def test_each_stack_is_pytorchs_transformer_with_the_same_weights(name) -> None:
    torch.manual_seed(0)
    model = shallow(name)
    trace = trace_of(model)
    memory = None
    for stack in model.stacks():
        start = torch.tensor(trace.residual[stack][0])[None]
        with torch.inference_mode():
            states = pytorchs_states(model, stack, start, memory)
        memory = states
    if trace.prediction is None:
        np.testing.assert_allclose(trace.residual["encoder"][-1], states[0], atol=CLOSE, rtol=CLOSE)
    else:
        table = model.module.state_dict().get("output.weight", torch.tensor(model.embedding))
        shift = model.module.state_dict().get("output.bias", torch.zeros(len(WORDS)))
        theirs = F.linear(states[0], table, shift)
        np.testing.assert_allclose(trace.logits, theirs, atol=1e-4, rtol=1e-4)


def pytorchs_states(model: Model, stack: str, x: Tensor, memory: Tensor | None) -> Tensor:
    """What PyTorch's own layers make of the states that the first of our layers reads."""
    config = model.config
    kinds = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": partial(F.gelu, approximate="tanh")}
    choices = {"dropout": 0.0, "activation": kinds[config.activation], "batch_first": True}
    sizes = (config.d_model, config.heads, config.d_mlp)
    pre = config.norm_place == "pre"
    final = nn.LayerNorm(config.d_model) if pre else None
    state = pytorchs_names(model.module.state_dict(), stack)
    if memory is None:
        layer = nn.TransformerEncoderLayer(*sizes, norm_first=pre, **choices)
        depth = config.encoder_layers if stack == "encoder" else config.decoder_layers
        whole = nn.TransformerEncoder(layer, depth, final, enable_nested_tensor=False)
        fill_biases(whole, state)
        causal = None
        if stack == "decoder":
            causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return whole.eval()(x, mask=causal, is_causal=causal is not None)
    layer = nn.TransformerDecoderLayer(*sizes, norm_first=pre, **choices)
    decoder = nn.TransformerDecoder(layer, config.decoder_layers, final)
    fill_biases(decoder, state)
    causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
    return decoder.eval()(x, memory, tgt_mask=causal, tgt_is_causal=True)


def fill_biases(theirs: nn.Module, state: dict[str, Tensor]) -> None:
    """Loads our weights; biases that our model lacks are zero."""
    missing = {key: torch.zeros_like(one) for key, one in theirs.state_dict().items()}
    assert state.keys() <= missing.keys()
    assert all(key.endswith("bias") for key in missing.keys() - state.keys())
    theirs.load_state_dict(missing | state)


@cases("name", CLASSES)
def test_the_listing_is_the_model_and_the_check_line_holds(name) -> None:
    torch.manual_seed(0)
    model = shallow(name)
    trace = trace_of(model)
    assert trace.check() < CLOSE
    assert checked_difference(model, trace, model.module.named_weights()) < CLOSE
    made = run_listing(listing(model), model, trace)
    if trace.prediction is not None:
        np.testing.assert_allclose(made, trace.logits, atol=1e-4, rtol=1e-4)
    else:
        with torch.inference_mode():
            own = model.module(torch.tensor([[token.id for token in trace.tokens]]))
        np.testing.assert_allclose(made, own[0], atol=1e-4, rtol=1e-4)
        told = [float(number) for number in printed(model, trace).split()]
        np.testing.assert_allclose(made[0, : len(told)], told, atol=2e-4)  # as many are printed


def test_dropped_weights_in_training_are_those_of_pytorchs_module() -> None:
    """The same seed drops the same weights; outside training none is dropped."""
    config = replace(shallow("notes-causal").config, attention_dropout=0.5)
    ours = with_random_weights(replace(UNTRAINED_BY_NAME["notes-causal"], config=config))
    attention = ours.attentions()[0]
    theirs = nn.MultiheadAttention(64, 1, dropout=0.5, batch_first=True)
    theirs.load_state_dict(in_one(ours.state_dict(), "decoder.blocks.0.self_attention", 64))
    x = torch.linspace(-1, 1, 6 * 64).view(1, 6, 64)
    future = nn.Transformer.generate_square_subsequent_mask(6)
    results = []
    for part in (attention, theirs):
        part.train()
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(3)
            if part is theirs:
                made = theirs(x, x, x, attn_mask=future, is_causal=True, need_weights=False)[0]
            else:
                made = attention(x)
        results.append(made)
    np.testing.assert_allclose(*results, atol=CLOSE)
    with torch.no_grad():
        whole = attention.eval()(x)
    assert not torch.allclose(results[0], whole, atol=1e-3)
    assert torch.equal(whole, attention(x).detach())


def test_the_weights_are_drawn_once_and_for_all_and_disturb_nobody() -> None:
    before = torch.get_rng_state()
    one, other = (load_model("notes-two-layers").module.state_dict() for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one[name], other[name]) for name in one)
    further = with_random_weights(UNTRAINED_BY_NAME["notes-two-layers"], seed=1).state_dict()
    for name, weight in one.items():
        same = torch.equal(weight, further[name])
        assert same == name.endswith(("gamma", "beta")), name  # norms begin as norms do
        assert weight.isfinite().all(), name


def test_a_class_without_w_o_keeps_the_heads_as_they_are() -> None:
    for model in UNTRAINED:
        if model.entry.name in (BIG, "paper-base"):
            continue
        weight = with_random_weights(model).attentions()[0].output.weight
        assert torch.equal(weight, torch.eye(len(weight))) == model.keeps_heads


@cases("name", NAMES)
def test_the_size_that_is_told_is_that_of_the_weights(name) -> None:
    torch.manual_seed(0)
    config: TransformerConfig = UNTRAINED_BY_NAME[name].config
    with torch.device("meta"):
        counted = sum(weight.numel() for weight in Transformer(config).parameters())
    assert untrained_bytes(name) == 4 * counted
    if name == BIG:
        assert untrained_models[name].about.startswith(f"{counted:,} parameters")
        assert f"{4 * counted / 1e6:.0f} MB" in untrained_models[name].about


def test_a_model_over_the_bound_is_refused_before_its_weights_are_made() -> None:
    with pytest.raises(ValueError, match=r"notes-gpt-124m cannot be opened: it needs 652 MB"):
        load_model(BIG, most_bytes=100_000_000)


def test_they_stand_apart_and_may_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not set(models) & set(NAMES)
    assert next(iter(models)) == "house-gpt"
    assert untrained() == list(NAMES)
    assert all(entry.title.startswith("Untrained: ") for entry in untrained_models.values())
    assert all(may_be_linked(name) for name in NAMES)
    model = load_model("notes-post-norm")
    assert (model.name, model.config) == ("notes-post-norm", UNTRAINED_BY_NAME[model.name].config)
    assert model.tokenizer.size == model.config.d_vocab
    fewer = settings().model_copy(update={"models": ("gpt2", "notes-causal")})
    monkeypatch.setattr("model.loading.registry.settings", lambda: fewer)
    assert untrained() == ["notes-causal"]


def test_the_papers_model_begins_and_ends_a_target_with_tokens_of_its_own() -> None:
    tokenizer = load_model("paper-base").tokenizer
    assert tokenizer.size == UNTRAINED_BY_NAME["paper-base"].config.d_vocab
    read = tokenizer.tokens("<start> a cat <end>")
    assert not {tokenizer.start, tokenizer.end} & {token.id for token in read}
    start, end = tokenizer.named([tokenizer.start, tokenizer.end])
    assert (start.text, end.text, start.special, end.special) == ("<start>", "<end>", True, True)
    ids = [tokenizer.start, *(token.id for token in read), tokenizer.end]
    assert tokenizer.decode(ids) == "<start> a cat <end>"

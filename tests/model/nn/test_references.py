"""The same weights in our transformer and in PyTorch's and Hugging Face's own: the same numbers."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from model import Model, Trace
from model.download.wheel import cache_folder
from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from tests.cases import cases
from tests.model.tiny import SENTENCE, WORDS, build, closed_tokenizer, loaded, target

THREE = ("query", "key", "value")
SENTENCES = (
    "The animal didn't cross the street because it was too tired.",
    "Ünïcode, [brackets], 123.45 and unaffable words!",
    "ok",
)
SIZES = {
    "vocab_size": len(WORDS),
    "bos_token_id": 0,
    "eos_token_id": 1,
    "attn_implementation": "eager",
}


def assert_same_pass(trace: Trace, theirs: Any, states: tuple[np.ndarray, ...]) -> None:
    """Hidden states before and after each layer, and every head's weights."""
    assert len(states) == len(theirs.hidden_states)
    for ours, other in zip(states, theirs.hidden_states, strict=True):
        np.testing.assert_allclose(ours, other[0], atol=1e-4, rtol=1e-4)
    for attention, weights in zip(trace.attention, theirs.attentions, strict=True):
        for head in range(attention.heads):
            np.testing.assert_allclose(attention.weights(head), weights[0, head], atol=1e-5)


@pytest.fixture(scope="module")
def bert() -> BertModel:
    loaded("minilm")  # fetches and checks the files
    return BertModel.from_pretrained(cache_folder("minilm"), attn_implementation="eager").eval()


@cases("text", SENTENCES)
def test_minilm_is_hugging_faces_bert(text, bert: BertModel) -> None:
    model = loaded("minilm")
    trace = model.trace(text, record="full")
    read: dict[str, Tensor] = {}
    hooks = [
        module.register_forward_hook(lambda *call, name=name: read.update({name: call[2]}))
        for name, module in bert.named_modules()
        if name.endswith("LayerNorm")
    ]
    ids = torch.tensor([[token.id for token in trace.tokens]])
    with torch.inference_mode():
        theirs = bert(ids, output_attentions=True, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    assert_same_pass(trace, theirs, trace.residual["encoder"][::2])
    assert len(trace.norms) == len(read) == 13
    for norm, output in zip(trace.norms, read.values(), strict=True):
        np.testing.assert_allclose(norm.output, output[0], atol=1e-4)


def test_minilm_reads_the_word_pieces_that_hugging_face_reads() -> None:
    from transformers import PreTrainedTokenizerFast

    loaded("minilm")
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(cache_folder("minilm") / "tokenizer.json"))
    theirs.backend_tokenizer.no_padding()
    theirs.backend_tokenizer.no_truncation()
    for text in SENTENCES:
        tokens = loaded("minilm").tokens(text)
        assert [token.id for token in tokens] == theirs(text)["input_ids"]
        assert [token.special for token in tokens] == [True, *[False] * (len(tokens) - 2), True]


def with_state(config: TransformerConfig, state: dict[str, Tensor]) -> Model:
    module = Transformer(config)
    module.load_state_dict(state)
    return Model("reference", module, closed_tokenizer())


def seeded_weights(module: nn.Module) -> nn.Module:
    """Every weight random and of a size that matters, norms and biases too."""
    draws = torch.Generator().manual_seed(5)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=draws) * 0.3
    return module.eval()


def test_our_decoder_is_hugging_faces_gpt2() -> None:
    theirs = seeded_weights(
        GPT2LMHeadModel(GPT2Config(n_positions=16, n_embd=24, n_layer=3, n_head=4, **SIZES))
    )
    given = {
        name.removeprefix("transformer."): tensor for name, tensor in theirs.state_dict().items()
    }
    state = {
        "embedding.tokens.weight": given["wte.weight"],
        "embedding.positions.weight": given["wpe.weight"],
        "decoder.final_norm.gamma": given["ln_f.weight"],
        "decoder.final_norm.beta": given["ln_f.bias"],
    }
    for layer in range(3):
        old, new = f"h.{layer}", f"decoder.blocks.{layer}"
        for part in ("weight", "bias"):
            # Hugging Face's Conv1D keeps (in, out); query, key and value lie side by side.
            joined = given[f"{old}.attn.c_attn.{part}"].chunk(3, -1)
            maps = dict(zip(THREE, joined, strict=True))
            maps["output"] = given[f"{old}.attn.c_proj.{part}"]
            for name, tensor in maps.items():
                state[f"{new}.self_attention.{name}.{part}"] = tensor.t()
            for name, old_name in (("w_in", "c_fc"), ("w_out", "c_proj")):
                tensor = given[f"{old}.mlp.{old_name}.{part}"]
                state[f"{new}.feed_forward.{name}.{part}"] = tensor.t()
            ours_part = "gamma" if part == "weight" else "beta"
            state[f"{new}.self_norm.{ours_part}"] = given[f"{old}.ln_1.{part}"]
            state[f"{new}.feed_forward_norm.{ours_part}"] = given[f"{old}.ln_2.{part}"]
    config = TransformerConfig(
        "decoder", len(WORDS), 16, 24, 4, decoder_layers=3, d_mlp=96, activation="gelu_tanh"
    )
    _assert_same_decoder(with_state(config, state), theirs)


LLAMA_NAMES = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.o_proj": "self_attention.output",
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.w_in",
    "mlp.down_proj": "feed_forward.w_out",
    "input_layernorm": "self_norm",
    "post_attention_layernorm": "feed_forward_norm",
}


def our_names(llama: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Llama's weights under our names; its feed-forward has no biases, so ours are zero."""
    given = {name.removeprefix("model."): tensor for name, tensor in llama.items()}
    state = {
        "embedding.tokens.weight": given["embed_tokens.weight"],
        "decoder.final_norm.gamma": given["norm.weight"],
        "output.weight": given["lm_head.weight"],
    }
    for layer in range(layers):
        for theirs, ours in LLAMA_NAMES.items():
            weight, name = (
                given[f"layers.{layer}.{theirs}.weight"],
                f"decoder.blocks.{layer}.{ours}",
            )
            state[f"{name}.gamma" if ours.endswith("norm") else f"{name}.weight"] = weight
            if ours.startswith("feed_forward."):
                state[f"{name}.bias"] = torch.zeros(weight.shape[0])
    return state


def test_our_rotary_decoder_is_hugging_faces_llama() -> None:
    described = LlamaConfig(
        hidden_size=24,
        num_attention_heads=3,
        intermediate_size=40,
        num_hidden_layers=3,
        max_position_embeddings=16,
        rms_norm_eps=1e-6,
        tie_word_embeddings=False,
        **SIZES,
    )
    theirs = seeded_weights(LlamaForCausalLM(described))
    config = TransformerConfig(
        "decoder",
        len(WORDS),
        16,
        24,
        3,
        decoder_layers=3,
        d_mlp=40,
        norm="rms",
        activation="swiglu",
        positions="rotary",
        qkv_bias=False,
        output_bias=False,
        tied=False,
        epsilon=1e-6,
    )
    _assert_same_decoder(with_state(config, our_names(theirs.state_dict(), 3)), theirs)


def _assert_same_decoder(model: Model, theirs: nn.Module) -> None:
    trace = model.trace(SENTENCE, record="full")
    ids = torch.tensor([[token.id for token in trace.tokens]])
    with torch.inference_mode():
        result = theirs(ids, output_attentions=True, output_hidden_states=True)
    final = next(norm.output for norm in trace.norms if norm.name == "decoder.final.norm")
    # Hugging Face's last hidden state is the one after the final norm.
    assert_same_pass(trace, result, (*trace.residual["decoder"][:-1:2], final))
    np.testing.assert_allclose(trace.logits, result.logits[0], atol=1e-4, rtol=1e-4)


@cases("name", ["translator", "translator-pre"])
def test_our_encoder_and_decoder_are_pytorchs_transformer(name) -> None:
    torch.manual_seed(0)
    model = build(name)
    config = model.config
    pre = config.norm_place == "pre"
    # A function, not nn.GELU("tanh"): PyTorch's fast path takes every nn.GELU for the exact one.
    activation = F.relu if config.activation == "relu" else partial(F.gelu, approximate="tanh")
    sizes = {"dim_feedforward": config.d_mlp, "dropout": 0.0, "activation": activation}
    kind = {"batch_first": True, "norm_first": pre, "layer_norm_eps": config.epsilon}
    layers = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
    parts = [layer(config.d_model, config.heads, **sizes, **kind) for layer in layers]
    norms = [nn.LayerNorm(config.d_model) if pre else None for _ in parts]
    encoder = nn.TransformerEncoder(
        parts[0], config.encoder_layers, norms[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(parts[1], config.decoder_layers, norms[1])
    encoder.load_state_dict(pytorchs_names(model.module.state_dict(), "encoder"))
    decoder.load_state_dict(pytorchs_names(model.module.state_dict(), "decoder"))

    trace = model.trace(SENTENCE, target(model))
    read, written = (torch.tensor(trace.residual[stack][0])[None] for stack in model.stacks())
    causal = nn.Transformer.generate_square_subsequent_mask(written.shape[1])
    with torch.inference_mode():
        memory = encoder.eval()(read)
        states = decoder.eval()(written, memory, tgt_mask=causal, tgt_is_causal=True)
    np.testing.assert_allclose(
        trace.logits, states[0] @ torch.tensor(model.embedding).T, atol=1e-4, rtol=1e-4
    )


def pytorchs_names(state: dict[str, Tensor], stack: str) -> dict[str, Tensor]:
    """Our weights of one stack under the names of torch.nn.Transformer's layers."""
    crosses = f"{stack}.blocks.0.cross_norm.gamma" in state
    cross = ["cross_norm"] if crosses else []
    norms = ["self_norm", *cross, "feed_forward_norm"]
    renamed = {"feed_forward.w_in": "linear1", "feed_forward.w_out": "linear2"}
    renamed |= {name: f"norm{number}" for number, name in enumerate(norms, 1)}
    kinds = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
    renamed |= {f"{ours}.output": f"{theirs}.out_proj" for ours, theirs in kinds.items()}
    theirs = {}
    for name, tensor in state.items():
        whole, part = name.rsplit(".", 1)
        part = {"gamma": "weight", "beta": "bias"}.get(part, part)
        if whole == f"{stack}.final_norm":
            theirs[f"norm.{part}"] = tensor
        if not name.startswith(f"{stack}.blocks."):
            continue
        _, _, layer, inside = whole.split(".", 3)
        if inside in renamed:
            theirs[f"layers.{layer}.{renamed[inside]}.{part}"] = tensor
        elif inside.endswith(".query"):
            joined = [state[f"{whole.removesuffix('query')}{which}.{part}"] for which in THREE]
            kind = kinds[inside.removesuffix(".query")]
            theirs[f"layers.{layer}.{kind}.in_proj_{part}"] = torch.cat(joined)
    return theirs

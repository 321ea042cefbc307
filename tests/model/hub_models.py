"""Tiny random models of Hugging Face's families, saved as the hub lays them out."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from model import Intervention, Model, Trace, load_model
from model.download.wheel import cache_folder
from model.hub.inline_attention import reference_mended
from model.nn.intervention import UNCHANGED
from tests.folders import new_folder
from tests.model.hub_families import ADDING, FAMILIES, GROUPED, ODD, PARTLY, REFUSED, SPECIAL, WORDS

TEXT = "the cat saw the dog and the cat saw the mat"
TARGET = "the lion kills the tiger"


def build(kind: str, settings: str, choices: dict[str, Any]) -> Any:
    """A model of a class with random weights, norms and biases too; not yet saved."""
    config = getattr(transformers, settings)(**choices)
    torch.manual_seed(0)
    body = getattr(transformers, kind)(config)
    for weight in body.parameters():
        if weight.requires_grad:
            noise = torch.randn(weight.shape)
            wide = weight.ndim == 1
            weight.data = 1 + noise / 3 if wide else noise / weight.shape[-1] ** 0.5
    return body.eval()


def save(folder: Path, body: Any, *, adds: bool) -> Path:
    """A model and a tokenizer of whole words, in the hub's layout."""
    body.save_pretrained(folder)
    spelled = {word: id_ for id_, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(spelled, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if adds:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
        )
    save_tokenizer(folder, tokenizer)
    return folder


def save_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """A tokenizer with the special tokens of these models, in the hub's layout."""
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
    ).save_pretrained(folder)


def train_pieces(prefix: Path, sentences: list[str], *symbols: str) -> Path:
    """A small SentencePiece model of these sentences, with these symbols: its file."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_prefix=str(prefix),
        vocab_size=24,
        hard_vocab_limit=False,
        control_symbols=list(symbols),
        minloglevel=2,
    )
    return prefix.with_suffix(".model")


@cache
def saved(family: str) -> Path:
    """The folder of a tiny model, made once."""
    folder = new_folder(family)
    kind, settings, choices = (FAMILIES | PARTLY | ODD | REFUSED)[family][:3]
    return save(folder, build(kind, settings, choices), adds=family in ADDING)


@cache
def loaded(family: str) -> Model:
    """A tiny model as the app loads it."""
    return load_model(str(saved(family)), device="cpu")


@cache
def smollm2s_tokenizer() -> Any:
    """Of SmolLM2, with its template, as the app opens it beside a small body."""
    folder = new_folder("smollm2")
    sizes = GROUPED | {"vocab_size": 49_152}
    build("LlamaForCausalLM", "LlamaConfig", sizes).save_pretrained(folder)
    for file in cache_folder("smollm2-135m-instruct").iterdir():
        if "token" in file.name or "template" in file.name:
            shutil.copy(file, folder)
    return load_model(str(folder), device="cpu").tokenizer


def eager(model: Model, trace: Trace, change: Callable[[Any], None] = lambda stock: None) -> Any:
    """What the library itself makes of the same ids, with its weights and states. change: what is done to its
    model before."""
    return eager_stock(model, trace, change, output_attentions=True, output_hidden_states=True)


def eager_stock(
    model: Model, trace: Trace, change: Callable[[Any], None] = lambda stock: None, **asked: bool
) -> Any:
    """What the library itself makes of the same ids, with the attention it ships."""
    kinds = {
        "decoder": transformers.AutoModelForCausalLM,
        "encoder": transformers.AutoModel,
        "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
    }
    stock = kinds[model.config.shape].from_pretrained(model.name, attn_implementation="eager")
    change(stock)
    fed = {"input_ids": torch.tensor([[token.id for token in trace.tokens]])}
    if trace.target_tokens:
        fed["decoder_input_ids"] = torch.tensor([[token.id for token in trace.target_tokens]])
    with torch.inference_mode(), reference_mended(stock):
        return stock.eval()(**fed, **asked)


def eager_weights(model: Model, theirs: Any) -> list[torch.Tensor]:
    """(1, head, query, key): the library's own weights of every layer, in order of execution."""
    if model.config.shape != "encoder-decoder":
        # MiniMax hands out the states of its layers without attention beside them.
        return [one for one in theirs.attentions if (one >= 0).all()]
    layers = [*theirs.encoder_attentions]
    for own, cross in zip(theirs.decoder_attentions, theirs.cross_attentions, strict=True):
        layers += [own, cross]
    return layers


def traced(model: Model, intervention: Intervention = UNCHANGED, **more: Any) -> Trace:
    """A pass over the text, and the target of a model that reads two."""
    target = TARGET if model.config.shape == "encoder-decoder" else None
    return model.trace(TEXT, target, intervention, **more)

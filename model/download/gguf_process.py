"""Unpacks a GGUF file into the hub's layout, in a process of its own: it takes 20 seconds of a processor, and
twice the memory of the weights. It imports nothing of this project.

`python -P gguf_process.py FOLDER FILE PLACE` reads FILE in FOLDER and writes config, tokenizer and weights
into PLACE.
"""

import os
import sys
from pathlib import Path

LOWEST = 19  # priority: whoever looks at a page goes first


def main(folder: Path, file: str, place: Path) -> None:
    import torch
    import transformers
    from safetensors.torch import save_file
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    settings = transformers.AutoConfig.from_pretrained(
        folder, gguf_file=file, trust_remote_code=False
    )
    with torch.device("meta"):  # only the names of its weights are needed
        empty = transformers.AutoModelForCausalLM.from_config(settings)
    read = load_gguf_checkpoint(
        str(folder / file), return_tensors=True, model_to_load=empty, torch_dtype=torch.bfloat16
    )
    tensors = read["tensors"]
    if settings.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    settings.architectures = [type(empty).__name__]
    settings.dtype = "bfloat16"
    settings.save_pretrained(place)
    transformers.AutoTokenizer.from_pretrained(
        folder, gguf_file=file, trust_remote_code=False
    ).save_pretrained(place)
    kept = {part: value.contiguous() for part, value in tensors.items()}
    save_file(kept, place / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    os.nice(LOWEST)
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))

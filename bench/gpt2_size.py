"""A random model of GPT-2's size (124M), in our layout and as the configurations of the others.

Nothing is downloaded: cost does not depend on what the weights say.
"""

from pathlib import Path

NAME = "gpt2-size"
LAYERS, HEADS, WIDTH, CONTEXT, VOCABULARY = 12, 12, 768, 1024, 50_257
SEED = 0


def text_of(tokens: int) -> str:
    """A text of so many GPT-2 tokens."""
    words = ("the", "cat", "sat", "on", "a", "mat", "and", "saw", "that", "it", "was", "warm")
    return "".join(f" {words[n % len(words)]}" for n in range(tokens))


def save(
    folder: Path,
    name: str = NAME,
    layers: int = LAYERS,
    width: int = WIDTH,
    heads: int = HEADS,
) -> Path:
    """Writes the model, or one of other sizes, in the layout of `model/assets` into a folder of its name;
    returns it."""
    import torch

    from model.nn.config import TransformerConfig
    from model.nn.transformer import Transformer
    from model.run.tokenizers import GPT2Subset
    from tools.training.publishing import save_asset

    torch.manual_seed(SEED)
    config = TransformerConfig(
        "decoder",
        VOCABULARY,
        CONTEXT,
        width,
        heads,
        decoder_layers=layers,
        d_mlp=4 * width,
        activation="gelu_tanh",
    )
    target = folder / name
    tokenizer = GPT2Subset(range(VOCABULARY))
    save_asset(target, Transformer(config), tokenizer, card={"title": "Random, of GPT-2's size"})
    return target

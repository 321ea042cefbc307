"""What the modules of a model have and do, and what may therefore not be said of it."""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from tests.pages.reading import own


@dataclass(frozen=True)
class Facts:
    """What the modules of a model have and do."""

    beta: bool  # some norm adds a bias
    vector_bias: bool  # the maps to queries, keys and values do
    hidden_bias: bool  # those of the feed-forward do
    output_bias: bool  # W_O does
    feed_forward: bool
    adds: bool  # what the first layer reads is not the token's vector alone
    centres: bool  # a norm gives the same for x and x + 1
    sees_all: bool  # the first output changes with the last token
    shares_keys: bool  # the map to keys is narrower than that to queries


@cache
def facts(name: str) -> Facts:
    module = own(name).module
    named = dict(module.named_modules())
    norms = [part for path, part in named.items() if type(part).__name__.endswith("Norm")]
    biases = [path for path, _ in module.named_parameters() if path.endswith(".bias")]

    def some(*words: str) -> bool:
        return any(word in path for path in biases for word in words)

    x = torch.randn(1, 3, module.config.d_model)
    return Facts(
        beta=any(getattr(part, "beta", getattr(part, "bias", None)) is not None for part in norms),
        vector_bias=some(".query.", "q_proj"),
        hidden_bias=some("feed_forward.w_in", "mlp."),
        output_bias=some("attention.output", "o_proj"),
        feed_forward=any(
            path.endswith((".feed_forward", ".mlp")) and list(part.parameters())
            for path, part in named.items()
        ),
        adds=_adds(module),
        centres=bool(torch.allclose(norms[0](x), norms[0](x + 1), atol=1e-3)),
        sees_all=_sees_all(module),
        shares_keys=any(
            path.endswith("q_proj")
            and named[path.replace("q_proj", "k_proj")].weight.numel() < part.weight.numel()
            for path, part in named.items()
        ),
    )


def _ran(module: nn.Module, ids: Tensor) -> Tensor:
    with torch.inference_mode():
        found: Tensor = (
            module(ids, ids) if module.config.shape == "encoder-decoder" else module(ids)
        )
    return found


def _adds(module: nn.Module) -> bool:
    """Whether the first layer reads another vector for the same token at another position."""
    lists = [part for part in module.modules() if isinstance(part, nn.ModuleList)]
    seen: list[Tensor] = []
    hook = lists[0][0].register_forward_pre_hook(
        lambda _, read, named: seen.append([*read, *named.values()][0]), with_kwargs=True
    )
    ids = torch.tensor([[5, 5, 5]])
    _ran(module, ids)
    hook.remove()
    return not torch.allclose(seen[0][0, 0], seen[0][0, 1])


def _sees_all(module: nn.Module) -> bool:
    one, other = torch.tensor([[5, 6, 7]]), torch.tensor([[5, 6, 8]])
    if module.config.shape == "encoder-decoder":
        return False
    return not torch.allclose(_ran(module, one)[0, 0], _ran(module, other)[0, 0])


def contradictions(known: Facts) -> list[str]:
    """Words that are false of a model with these facts."""
    words: list[str] = []
    if not known.beta:
        words += ["β", r"\beta"]
    if not known.vector_bias:
        words += ["b_Q", "b_K", "b_V", "W_Q + b", "W_K + b"]
    if not known.hidden_bias:
        words += ["b_1", "b_2", "b_g", "b₁", "b₂"]
    if not known.output_bias:
        words += ["b_O"]
    if not known.adds:
        words += ["position is added", "+ PE_p", "E + P"]
    if not known.centres:
        words += [
            "so does this model",
            "kernel's own mean",
            "tokens' deviations",
            "mean and deviation",
        ]
    if known.sees_all:
        words += ["masked half", "causal mask", "√dₖ, masked"]
    if not known.feed_forward:
        words += ["→ 0 →", r"d_{\text{ff}}", "L0 feed-forward"]
    return words

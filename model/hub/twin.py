"""A second tree of modules with the weights of a model that somebody else has loaded.

The library's model stays as it is: hooks, configs and flags are set on the twin alone. So nothing has to be
put back, whatever fails and however many threads do this at once. The weights are not copied: a parameter of
the twin has the memory of the model's own, and is not trained.
"""

from collections import OrderedDict
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, PretrainedConfig, PreTrainedModel

_REBUILT = (dict, OrderedDict, list, tuple, set)
_PLAIN = (bool, int, float, str, torch.dtype)
_SWITCHES = ("output_attentions", "output_hidden_states")


def twin(model: nn.Module) -> Any:
    """A twin of a model, ready to be evaluated with the library's eager attention."""
    with torch.inference_mode(False):  # its weights may be read later where gradients are taken
        body = _Twins().of(model)
    configs = {id(part.config): part.config for part in body.modules() if hasattr(part, "config")}
    set_attention(body, "eager")
    for config in configs.values():
        if isinstance(config, PretrainedConfig):
            config.return_dict = True
            for switch in _SWITCHES:
                setattr(config, switch, False)
    return body


def set_attention(body: nn.Module, name: str) -> None:
    """Chooses the attention function of every part. Parts that know no other keep eager attention."""
    for part in body.modules():
        if isinstance(part, PreTrainedModel) and (name == "eager" or _may_choose(part)):
            part.config._attn_implementation = name


def _may_choose(model: PreTrainedModel) -> bool:
    """Whether a model calls the attention function that its config names. The library tells by the file of a
    class. One that was written in a notebook has none: the class that it extends is asked."""
    kinds = [kind for kind in type(model).__mro__ if issubclass(kind, PreTrainedModel)]
    own = next(kind for kind in kinds if kind.__module__.startswith("transformers."))
    return own._can_set_attn_implementation()


def check_weights(model: nn.Module) -> None:
    """Raises ValueError for weights that are not plain numbers in memory."""
    for name, weight in model.named_parameters():
        if weight.is_meta:
            raise ValueError(
                f"its weights {name} are not in memory; record it from its files, layer by layer"
            )
        if not weight.is_floating_point():
            raise ValueError(
                f"its weights {name} are quantized ({str(weight.dtype).removeprefix('torch.')}); only "
                "floating-point weights are read"
            )


class _Twins:
    """Each module, parameter and config of a tree has one twin, so that what is shared stays shared."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}
        self._configs: dict[int, Any] = {}  # of deepcopy

    def of(self, value: Any) -> Any:
        """The twin of a value: of parts of the model a new one, anything else as it is."""
        if id(value) in self._known:
            return self._known[id(value)]
        match value:
            case nn.Module():
                return self._module(value)
            case nn.Parameter() if type(value) is nn.Parameter:
                return self._keep(value, nn.Parameter(value.detach(), requires_grad=False))
            case PretrainedConfig() | GenerationConfig():
                return deepcopy(value, self._configs)
            case MethodType():
                return MethodType(value.__func__, self.of(value.__self__))
            case partial():
                named = {name: self.of(one) for name, one in value.keywords.items()}
                return partial(self.of(value.func), *map(self.of, value.args), **named)
        return self._rebuilt(value) if type(value) in _REBUILT else value

    def _rebuilt(self, value: Any) -> Any:
        """A container with the twins of what it holds."""
        if isinstance(value, dict):
            return type(value)((name, self.of(one)) for name, one in value.items())
        return type(value)(map(self.of, value))

    def _module(self, module: nn.Module) -> nn.Module:
        made = self._keep(module, type(module).__new__(type(module)))
        for (
            table
        ) in module._buffers.values():  # a pass may write into them: rotary angles by length
            if table is not None and id(table) not in self._known:
                self._keep(table, table.clone())
        for name, value in vars(module).items():
            made.__dict__[name] = self.of(value)
        made.__dict__ |= {"training": False, "_compiled_call_impl": None}
        return made

    def _keep(self, value: Any, made: Any) -> Any:
        self._known[id(value)] = made
        return made


def weights_changed(model: nn.Module) -> tuple[object, ...]:
    """A value that differs after a change of the model's parts, their attributes, its weights, hooks or
    settings. Changes through `.data` go unnoticed, because PyTorch does not count them."""
    parts = tuple(
        (id(part), type(part), *part._forward_hooks, *part._forward_pre_hooks, *_attributes(part))
        for part in model.modules()
    )
    tensors = tuple(map(_state, (*model.parameters(), *model.buffers())))
    return parts, tensors, str(getattr(model, "config", None))


def _attributes(part: nn.Module) -> Iterator[tuple[str, object]]:
    """What a part computes with beside its weights: numbers, tensors, switches, its own `forward`."""
    for name, value in vars(part).items():
        if name == "forward":
            yield name, id(value)
        elif isinstance(value, Tensor):
            yield name, _state(value)
        elif name != "training" and (value is None or isinstance(value, _PLAIN)):
            yield name, value


def _state(weight: Tensor) -> tuple[object, ...]:
    version = None if weight.is_inference() else weight._version
    return id(weight), weight.data_ptr(), version, weight.dtype, weight.device, weight.shape

"""Hashes by which a model's weights are known again."""

import hashlib
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from model.system.remote import asked

if TYPE_CHECKING:
    from model.run.model import Model

_SAMPLE = 64  # numbers of each weight


@asked
def weights_hash(model: "Model") -> str:
    """SHA-256 of all weights, by name."""
    return _hash_of(model, step_to=None)


def fingerprint(model: "Model") -> str:
    """SHA-256 of the names, the shapes and 64 numbers of each weight, evenly spaced.

    It is there at once, also of a model of gigabytes; a model elsewhere is asked once. A change of other
    numbers it does not see.
    """
    return _fingerprints.of(model)


@asked
def _sampled_hash(model: "Model") -> str:
    return _hash_of(model, step_to=_SAMPLE)


class _Fingerprints:
    """Those of modules, gone with them."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[object, str] = WeakKeyDictionary()

    def of(self, model: "Model") -> str:
        if model.module not in self._known:
            self._known[model.module] = _sampled_hash(model)
        return self._known[model.module]


_fingerprints = _Fingerprints()


def _hash_of(model: "Model", step_to: int | None) -> str:
    import torch  # pages that ask for this are drawn before it is there

    digest = hashlib.sha256()
    for name, weight in sorted(model.module.state_dict().items()):
        digest.update(name.encode())
        numbers = weight.detach().contiguous().flatten()
        if step_to is not None:
            digest.update(repr(tuple(weight.shape)).encode())
            numbers = numbers[:: max(1, len(numbers) // step_to)]
        digest.update(numbers.cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()

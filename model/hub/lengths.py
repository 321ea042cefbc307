"""Up to how many tokens a model's pass is held against the library's own, without a cache and with one.

Much begins at a length: a sliding window, a chunk, an indexer's choice of keys, other rotary angles. The text
of the check at load crosses the short ones. Before the first pass that crosses another one, or that is more
than twice as long as what was compared, tokens of that text are mixed to one as long, and the library's model
and ours must agree on it. Axes: S source tokens, T tokens of a decoder, V vocabulary.
"""

import re
import threading
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from model.hub.attention import NAME
from model.hub.inline_attention import reference_mended, unadapted
from model.hub.parts import Anatomy, run
from model.hub.twin import set_attention, twin
from model.nn.recorder import Recorder, recording
from model.system import deadline

SHARE = 1e-3  # largest difference of a number, as a share of the largest of them
ROUNDINGS = 32  # of half precision, that a pass may add up to
CROSSED = 64  # tokens; shorter lengths of a config are crossed by the text of the check at load
MOST_WEIGHTS = 2**26  # of a layer; where a text has more the library's fused attention is run
STEP, LONG = 64, 512  # tokens; up to the second a multiple of the first is compared
FLIPS = (
    100  # times more, where experts are chosen: of two that are as good, rounding may choose either
)
Reader = Callable[
    [Tensor, Tensor], Tensor
]  # source (1, S) and the next tokens (1, T) to logits (1, T, V)
_LENGTHS = re.compile(
    r"window|chunk|top_?k|local|original_max|block|compress|stride|floor_scale|index"
)
_SIZES = re.compile(r"dim|heads|layers|experts|group|rank|_ids?$")


def named_lengths(settings: Mapping[str, Any]) -> dict[str, int]:
    """The lengths, in tokens, that a config names: of windows, chunks, chosen keys, rotary angles."""
    found: dict[str, int] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= named_lengths(value)
        for one in value if isinstance(value, list | tuple) else (value,):
            is_length = isinstance(one, int) and not isinstance(one, bool) and one > 1
            if is_length and _LENGTHS.search(name) and not _SIZES.search(name):
                found[name] = max(one, found.get(name, 0))
    return found


class HeldLengths:
    """The lengths up to which a model is held. source (1, S) and target (1, T): ids of the check at load."""

    def __init__(
        self, body: Any, anatomy: Anatomy, context: int, source: Tensor, target: Tensor | None
    ) -> None:
        self._body, self._shape, self._context = body, anatomy.shape, context
        self._text = source, target
        self._heads = max(part.heads for part in anatomy.attentions())
        feeds = [block.feed_forward for stack in anatomy.stacks for block in stack.blocks]
        routers = {
            id(part.router) for part in feeds if part is not None and part.router is not None
        }
        self._routers = [name for name, one in body.named_modules() if id(one) in routers]
        layers = {id(block.module) for stack in anatomy.stacks for block in stack.blocks}
        self._layers = [name for name, one in body.named_modules() if id(one) in layers]
        self._named = named_lengths(body.config.to_dict())
        self._held = source.shape[-1], 0 if target is None else target.shape[-1]
        self._cached = 0
        self._alone = threading.Lock()

    def hold(self, source: int, target: int) -> None:
        """Compares the states of a pass over so many tokens with the library's own, where none was as long.
        Raises ValueError where they differ."""
        sizes = source, target
        if not self._beyond(sizes, self._held):
            return
        with self._alone:
            if not self._beyond(sizes, self._held):
                return
            apart = 0.0
            for tried in dict.fromkeys(((self._rounded(source), self._rounded(target)), sizes)):
                apart = self._apart(*self._mixed(*tried))
                if apart <= self._tolerance:
                    self._held = max(self._held[0], tried[0]), max(self._held[1], tried[1])
                    return
            held, length = max(self._held), max(sizes)
            raise ValueError(self._refusal(held, length, f"its states differ by {apart:.1g}"))

    def hold_cached(self, length: int, reader: Callable[[], Reader]) -> None:
        """Compares the logits of tokens that are read one by one with the library's own without a cache,
        where no text was as long: on both sides of each length of the config, and at the end. length: tokens
        that the decoder has read. reader: begins a new cache. Raises ValueError where they differ."""
        if not self._beyond((length,), (self._cached,)):
            return
        with self._alone:
            if not self._beyond((length,), (self._cached,)):
                return
            longest = self._rounded(length)
            crossed = (one + 2 for one in self._named.values() if self._cached <= one < longest - 2)
            for end in sorted({*crossed, longest}):
                apart = self._cached_apart(end, reader())
                if not apart <= self._tolerance * (FLIPS if self._routers else 1):
                    what = f"tokens read one by one give logits that differ by {apart:.1g}"
                    raise ValueError(self._refusal(self._cached, end, what))
            self._cached = longest

    @property
    def _tolerance(self) -> float:
        return SHARE + ROUNDINGS * torch.finfo(next(self._body.parameters()).dtype).eps

    def _beyond(self, sizes: tuple[int, ...], held: tuple[int, ...]) -> bool:
        """Whether lengths have to be compared: some are far longer than those that were, or cross a length of
        the config, or half of one, as of a window to both sides."""
        begins = {part for one in self._named.values() for part in (one // 2, one)}
        return any(
            size > 2 * known or any(known <= one < size for one in begins)
            for size, known in zip(sizes, held, strict=True)
        )

    def _rounded(self, size: int) -> int:
        """The length that is compared for this one: a short one is rounded up, within the context."""
        whole = size if size > LONG else min(-(-size // STEP) * STEP, self._context)
        return max(size, whole)

    def _refusal(self, held: int, length: int, what: str) -> str:
        begun = [f"{name} = {one}" for name, one in self._named.items() if one <= length]
        why = f" Its config names {', '.join(begun)}." if begun else ""
        return (
            f"This model was compared with the library's own attention over {held:,} tokens. With {length:,} "
            f"{what} of their size, so no text as long is shown.{why}"
        )

    def _mixed(self, source: int, target: int) -> tuple[Tensor, Tensor | None]:
        """(1, source) and (1, target): ids of the check at load in another order, so that no token is like
        the next one."""
        device = next(self._body.parameters()).device

        def of_length(ids: Tensor, length: int) -> Tensor:
            where = torch.arange(length)
            return ids[:, (7 * where + where // 3) % ids.shape[-1]].to(device)

        text, read = self._text
        return of_length(text, source), None if read is None else of_length(read, target)

    def _stock(self, length: int) -> Any:
        """The library's own model, with the same weights. It lets shorter passes by before each layer, as
        ours does."""
        stock = twin(self._body)
        for name in self._layers:
            stock.get_submodule(name).register_forward_pre_hook(lambda *read: deadline.look())
        if self._heads * length**2 > MOST_WEIGHTS and getattr(stock, "_supports_sdpa", False):
            set_attention(stock, "sdpa")
        return stock

    def _apart(self, source: Tensor, target: Tensor | None) -> float:
        """How far our last states are from the library's, as a share of their size. Experts are those that
        the library's pass chooses."""
        stock = self._stock(max(source.shape[-1], 0 if target is None else target.shape[-1]))
        ours = twin(self._body)  # rotary angles that grow with a text are kept on a module
        set_attention(ours, NAME)
        for name in self._routers:
            chosen: list[Any] = []  # what the library's router gives at each call

            def note(module: nn.Module, read: object, gave: object, to: list[Any] = chosen) -> None:
                to.append(gave)

            def give(*called: object, taken: list[Any] = chosen) -> Any:
                return taken.pop(0)

            stock.get_submodule(name).register_forward_hook(note)
            ours.get_submodule(name).register_forward_hook(give)
        with recording(Recorder()), torch.inference_mode():
            with unadapted(stock), reference_mended(stock):
                _, theirs = run(stock.base_model, self._shape, source, target)
            _, own = run(ours.base_model, self._shape, source, target)
        return _share(own, theirs)

    def _cached_apart(self, end: int, read: Reader) -> float:
        source, target = self._mixed(
            self._text[0].shape[-1] if self._text[1] is not None else end, end
        )
        ids = source if target is None else target
        first = max(end - 4, 1)
        with torch.inference_mode():
            for part in (ids[:, :first], *ids[:, first:].split(1, 1)):
                last = read(source, part)[:, -1]
            stock = self._stock(end)
            keeps = "logits_to_keep" in signature(stock.forward).parameters
            with recording(Recorder()), unadapted(stock), reference_mended(stock):
                more = {"logits_to_keep": 1} if keeps else {}
                _, theirs = run(stock, self._shape, source, target, **more)
        return _share(last, theirs[:, -1])


def _share(own: Tensor, theirs: Tensor) -> float:
    size = max(float(theirs.abs().max()), 1.0)
    return float((own.float() - theirs.float()).abs().max()) / size

"""What one forward pass left behind. Every view reads this and nothing else. Logits and the texts of a
vocabulary are given when they are asked for.

Arrays are numpy, float32, on the CPU and read-only. Axes are named beside each field:
head, query, key, token, d_k (width of a head), d_model, vocabulary.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from model.nn.config import ProvenPart, Reasons, Stack, TransformerConfig
from model.nn.intervention import Intervention
from model.nn.places import place_of, within
from model.system.border import at_border
from model.trace.arrays import Array, BoolArray, read_only
from model.trace.description import save_trace
from model.trace.given import WITHOUT_MODEL, GivenTokens, attention_given, of_length, texts_of
from model.trace.lazy import memory_of, with_lazy_fields
from model.trace.records import (
    Attention,
    ExpertsRecord,
    FeedForwardRecord,
    NormRecord,
    Token,
    largest,
)
from model.trace.unproven import (
    WORDS,
    Unproven,
    UnprovenError,
    proven,
    proven_states,
    require,
)

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 100_000  # bytes of one text: a sentence of words may be one long word
PackedArrays = dict[str, NDArray[np.uint8] | NDArray[np.int64] | NDArray[np.bool_]]


class Vocabulary:
    """`size` tokens. Their texts are asked for when they are read."""

    def __init__(
        self, size: int, named: Callable[[Sequence[int]], tuple[Token, ...]], nbytes: int = 0
    ) -> None:
        """nbytes: of the arrays that are kept for it; none of a tokenizer's own."""
        self.size, self.nbytes = size, nbytes
        self._named = named

    @classmethod
    def of(
        cls, text: NDArray[np.uint8], ends: NDArray[np.int64], special: BoolArray
    ) -> "Vocabulary":
        """The tokens of the arrays that `arrays` gives.

        Args:
            text: all texts in UTF-8, one behind the other.
            ends: (token,): where each ends in it.
            special: (token,): whether it is one of the tokenizer's own marks.

        Raises ValueError for ends in another order, letters behind the last, and a text beyond `LONGEST`.
        """
        lengths = np.diff(ends, prepend=0)
        if (lengths < 0).any() or len(text) != max(1, ends[-1]):
            raise ValueError("the texts of the vocabulary overlap, or leave letters over")
        if lengths.max() > LONGEST:
            raise ValueError(f"a text of the vocabulary has more than {LONGEST:,} bytes")

        def named(ids: Sequence[int]) -> tuple[Token, ...]:
            return tuple(_token(int(id_)) for id_ in ids)

        def _token(id_: int) -> Token:
            if not 0 <= id_ < len(ends):
                return Token(id_, "")
            begin = int(ends[id_ - 1]) if id_ else 0
            raw = text[begin : int(ends[id_])].tobytes()
            return Token(id_, raw.decode("utf-8", "replace"), special=bool(special[id_]))

        return cls(len(ends), named, text.nbytes + ends.nbytes + special.nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return Vocabulary.of, tuple(self.arrays().values())

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """The tokens of these ids."""
        return self._named(ids)

    def arrays(self) -> PackedArrays:
        """`text`: the texts in UTF-8, one behind the other; `ends` (token,): where each ends in it;
        `special` (token,): whether it is one of the tokenizer's own marks."""
        tokens = self.named(range(self.size))
        texts = [token.text.encode("utf-8", "replace") for token in tokens]
        return {
            "text": read_only(np.frombuffer(b"".join(texts) or b" ", np.uint8)),
            "ends": read_only(np.cumsum([len(one) for one in texts], dtype=np.int64)),
            "special": read_only(np.array([token.special for token in tokens])),
        }


_CHECK, _ALL = "_check", "all"  # a cached_property has one lock for all, in Python 3.11


class Logits:
    """The logits of one pass, (token, vocabulary).

    Those of a long text are computed when asked for: at 1,024 tokens of GPT-2 they take a third of
    the pass and 206 MB, and few views read more than one row. `all` is then kept.

    >>> logits = trace.prediction
    >>> assert logits is not None  # as of an encoder without a head
    >>> logits.shape, logits.vocabulary, logits.nbytes == logits.all.nbytes
    ((13, 8192), 8192, True)
    >>> logits.rows(0, 2).shape, model.tokenizer.named([int(logits.after(-1).argmax())])[0].text
    ((2, 8192), ' Hill')
    >>> type(logits).of(np.zeros((2, 5), np.float32))
    <Logits: 2 tokens × 5>
    """

    def __init__(
        self, shape: tuple[int, int], compute: Callable[[slice], Array], source: object = None
    ) -> None:
        """source: what they are computed from, where it may lie on a device."""
        self.shape, self.source = shape, source
        self._compute = compute

    def __repr__(self) -> str:
        tokens, vocabulary = self.shape
        return f"<Logits: {tokens} tokens × {vocabulary}>"

    @classmethod
    @at_border
    def of(cls, recorded: Array) -> "Logits":
        """Recorded logits. Raises ValueError for anything but (token, vocabulary)."""
        if np.ndim(recorded) != 2:
            raise ValueError(f"Logits are (token, vocabulary), not {np.shape(recorded)}.")
        recorded = np.asarray(recorded)
        tokens, vocabulary = recorded.shape
        return cls((tokens, vocabulary), read_only(recorded.view()).__getitem__)

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            return Logits.of, (self.all,)
        except UnprovenError:
            return Logits, (self.shape, self._compute)

    @property
    def vocabulary(self) -> int:
        """How many tokens the logits of one position are of."""
        return self.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, computed yet or not."""
        return 4 * self.shape[0] * self.shape[1]

    @at_border
    def after(self, position: int) -> Array:
        """(vocabulary,): the logits after the token at a position; -1 is the last one. Raises
        ValueError for a position outside the text."""
        at = within(position, self.shape[0], "The text has positions")
        return self.rows(at, at + 1)[0]

    @at_border
    def rows(self, first: int, end: int) -> Array:
        """(end - first, vocabulary): the logits after the tokens from `first` to before `end`."""
        wanted = slice(first, end)
        return self.all[wanted] if _ALL in vars(self) else self._compute(wanted)

    @property
    def all(self) -> Array:
        """(token, vocabulary)"""
        if _ALL not in vars(self):
            vars(self)[_ALL] = self._compute(slice(None))
        return cast(Array, vars(self)[_ALL])


def _refuse(model: str, unproven: Reasons, rows: slice) -> Array:
    raise UnprovenError(model, "logits", unproven)


_RECORDS: dict[ProvenPart, str] = {
    "stream": "residual",
    "embedding": "summands",
    "norms": "norms",
    "feed_forward": "feed_forward",
}


@with_lazy_fields
@dataclass(frozen=True, eq=False)
class Trace:
    """One pass of one model over one text. Holds no model and no tokenizer; safe to share.

    For a long text it keeps the weights from which logits, summands, and the vectors of attention are
    recomputed, with the same bits; the texts of the vocabulary are asked of the tokenizer when a file is
    written.

    >>> trace, trace.source, trace.stacks
    (<Trace of house-gpt: 13 tokens, 4 attention layers>, 'decoder', ('decoder',))
    >>> trace.streams["decoder"].shape, trace.require_prediction().shape
    ((9, 13, 256), (13, 8192))
    >>> [array.shape for array in (trace.embeddings, trace.positions, trace.logits) if array is not None]
    [(13, 256), (13, 256), (13, 8192)]
    >>> layer = trace.find("decoder.1.self")
    >>> [token.text for token in trace.queries_of(layer)][:3]
    ['Tom', ' Hill', ' saw']
    >>> trace.keys_of(layer) == trace.tokens_of("decoder") == trace.tokens
    True
    >>> trace.check() < 1e-4, trace.is_checked, trace.nbytes > 10**5
    (True, True, True)
    >>> trace.save("pass.safetensors")
    """

    model: str
    text: str
    intervention: Intervention
    tokens: tuple[Token, ...]  # exactly the ids fed, special tokens included
    target_tokens: tuple[Token, ...]  # exactly the decoder's input ids; () without a second stack
    attention: tuple[Attention, ...]  # in order of execution
    norms: tuple[NormRecord, ...]
    residual: Mapping[Stack, tuple[Array, ...]]  # the residual stream, (token, d_model) each
    summands: Mapping[Stack, Mapping[str, Array]]  # what the embedding added up, (token, d_model)
    angles: Array | None  # (token, d_k/2): rotary positions
    feed_forward: tuple[FeedForwardRecord, ...]
    prediction: Logits | None  # None for an encoder without a head
    device: str = ""  # "the CPU", "CUDA (NVIDIA H100)"; "" where it is not known
    experts: tuple[ExpertsRecord, ...] = ()  # of feed-forwards that choose some for each token
    # (token, d_model) by name: what a sub-layer wrote, where its neurons or its W_O are not told
    written: Mapping[str, Array] = field(default_factory=dict)
    unproven: Reasons = field(default_factory=dict)  # parts of the model that are not shown
    config: TransformerConfig | None = None  # of the model; None where it is not known
    vocabulary: Vocabulary | None = None  # of the prediction; None where it is not known

    def __repr__(self) -> str:
        tokens, layers = len(self.tokens) + len(self.target_tokens), len(self.attention)
        changed = f", {self.intervention}" if self.intervention.changes else ""
        return f"<Trace of {self.model}: {tokens} tokens, {layers} attention layers{changed}>"

    def __post_init__(self) -> None:
        """Records of parts that are not proven are replaced by ones that refuse to be read."""
        for part, kept in _RECORDS.items():
            if part in self.unproven:
                object.__setattr__(self, kept, Unproven(self.model, part, self.unproven))
        if "logits" in self.unproven and self.prediction is not None:
            object.__setattr__(self, "prediction", self._no_logits(self.prediction.shape))

    @classmethod
    @at_border
    def from_arrays(
        cls,
        *,
        query: object,
        key: object,
        value: object,
        mask: object = None,
        scale: float | None = None,
        tokens: GivenTokens | None = None,
        bias: object = None,
        target_tokens: GivenTokens | None = None,
    ) -> "Trace":
        """Attention of plain arrays, numpy's or PyTorch's. A list of them is one for each layer.

        Args:
            query, key, value: (head, token, d_k) each.
            mask: (query, key) or (head, query, key), True = may look; a mask of numbers is added, and its
                very negative ones hide. None: nothing is hidden.
            scale: the factor on the scores; None: 1/√d_k.
            tokens: words or ids of the keys' text; None: the numbers of the positions.
            bias: what is added to the scaled scores.
            target_tokens: of the queries' text, where that is another.

        Raises ValueError for shapes that do not fit and numbers that are not finite.

        >>> from model import Trace
        >>> vectors = np.eye(3)[None]  # (head, token, d_k)
        >>> trace = Trace.from_arrays(query=vectors, key=vectors, value=vectors, tokens=["a", "b", "c"])
        >>> trace.attention[0].weights(0)[0].round(2)
        array([0.47, 0.26, 0.26], dtype=float32)
        """
        crosses = target_tokens is not None
        records = attention_given(
            query, key, value, mask=mask, bias=bias, scale=scale, crosses=crosses
        )
        return cls.of_attention(records, "arrays", "", tokens, target_tokens, WITHOUT_MODEL)

    @classmethod
    @at_border
    def of_attention(
        cls,
        records: tuple[Attention, ...],
        model: str,
        device: str,
        tokens: GivenTokens | None,
        target_tokens: GivenTokens | None,
        reason: str,
    ) -> "Trace":
        """A trace of attention alone.

        Args:
            model, device: as they are named beside its numbers.
            tokens: words or ids of the text; None: the numbers of the positions.
            target_tokens: of the second text, if attention reads two.
            reason: is given where more than attention is asked of the trace.

        Raises ValueError where the words are not as many as the tokens.

        >>> from model import Trace
        >>> alone = trace.attention[:1]
        >>> Trace.of_attention(alone, "mine", "the CPU", None, None, "only attention is known")
        <Trace of mine: 13 tokens, 1 attention layers>
        """
        read, also = texts_of(records, tokens, target_tokens)
        text = "" if tokens is None else " ".join(token.text for token in read)
        alone: dict[str, Any] = dict.fromkeys(("norms", "feed_forward"), ())
        alone |= {"residual": {}, "summands": {}, "angles": None, "prediction": None}
        alone |= {"device": device, "unproven": dict.fromkeys(WORDS, reason)}
        return cls(model, text, Intervention(), read, also, records, **alone)

    def _no_logits(self, shape: tuple[int, int]) -> Logits:
        return Logits(shape, partial(_refuse, self.model, self.unproven))

    @property
    def logits(self) -> Array | None:
        """(token, vocabulary): all of `prediction`; None for an encoder without a head."""
        return None if self.prediction is None else self.prediction.all

    def require_prediction(self) -> Logits:
        """`prediction`. Raises ValueError for an encoder without a head."""
        require(self.model, "logits", self.unproven)
        if self.prediction is None:
            raise ValueError(f"{self.model} is an encoder: it predicts no next token.")
        return self.prediction

    @property
    def source(self) -> Stack:
        """The stack that read the text."""
        return "encoder" if "encoder" in self.stacks else "decoder"

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks that ran, in order."""
        return tuple(dict.fromkeys(attention.stack for attention in self.attention))

    @property
    def embeddings(self) -> Array:
        """(token, d_model): the token vectors of the text, before positions."""
        return self.summands[self.source]["tokens"]

    @property
    def positions(self) -> Array | None:
        """(token, d_model) as added, or rotary angles (token, d_k/2); None without positions."""
        return self.summands[self.source].get("positions", self.angles)

    @property
    def streams(self) -> dict[Stack, Array]:
        """(state, token, d_model) by stack: before, between and after the sub-layers. A copy at each
        reading; `residual` has single states without one."""
        return {stack: read_only(np.stack(states)) for stack, states in self.residual.items()}

    @property
    def nbytes(self) -> int:
        """Bytes of the recorded arrays, each counted once, and of all logits, computed yet or not."""
        others = (self.prediction, self.vocabulary)
        own = sum(dict(memory_of(self._held)).values())
        return own + sum(one.nbytes for one in others if one)

    @property
    def _held(self) -> tuple[object, ...]:
        """What holds its arrays, but those of the logits."""
        return (
            *(self.attention, proven(self.norms), proven(self.feed_forward), self.experts),
            *(proven_states(self.residual), proven_states(self.summands), self.written),
            vars(self)["angles"],
        )

    @at_border
    def fetch(self) -> None:
        """Reads what still lies on the device of the pass, in one copy: else each array is copied when it is
        first read.

        >>> trace.fetch()
        """
        from model.trace.transfer import fetch  # torch: pages are drawn first

        fetch(self._held, self.prediction and self.prediction.source)

    @at_border
    def tokens_of(self, stack: Stack) -> tuple[Token, ...]:
        """The tokens that a stack reads."""
        return self.target_tokens if self.target_tokens and stack == "decoder" else self.tokens

    @at_border
    def queries_of(self, attention: Attention) -> tuple[Token, ...]:
        """The tokens that look, in one of this trace's attention sub-layers."""
        read, count = self.tokens_of(attention.stack), attention.sizes[1]
        # Where it looks back, the first of more keys are those of tokens read before.
        return of_length(read[-count:] if attention.kind == "causal" else read, count)

    @at_border
    def keys_of(self, attention: Attention) -> tuple[Token, ...]:
        """The tokens looked at, in one of this trace's attention sub-layers."""
        read = self.tokens_of("encoder" if attention.kind == "cross" else attention.stack)
        return of_length(read, attention.sizes[2])

    @at_border
    def find(self, name: str | int) -> Attention:
        """The attention sub-layer of this name, of the module of this name, or of the layer of this number
        where each layer has one. Raises ValueError if the pass has none."""
        for attention in self.attention:
            place = attention.place
            if name in (place.name, place.module or place.name):
                return attention
        names = [attention.module or attention.name for attention in self.attention]
        return self.attention[place_of(name, names, self.model)]

    def weights(self) -> dict[str, Array]:
        """The weights of every sub-layer by its name, (head, query, key) each, derived at each call.

        By name, because sub-layers of two stacks have other sizes. Where all have one size,
        `np.stack([*trace.weights().values()])` is (layer, head, query, key).
        """
        return {attention.name: attention.weights() for attention in self.attention}

    def to_dataframe(self) -> "pd.DataFrame":
        """One row for each weight of the pass: layer (the sub-layer's name), head, query and key (positions
        from 0), query_token and key_token (their texts), and weight, 0 to 1. It has layers × heads × queries
        × keys rows.

        ```python
        frame = trace.to_dataframe()
        frame[frame.query_token == " Tom"].groupby(["layer", "head"])["weight"].max()
        ```
        """
        import pandas as pd  # takes a second to import

        frames = []
        for attention in self.attention:
            frame = attention.to_dataframe()
            for at, axis in enumerate(("query", "key")):
                tokens = (self.queries_of, self.keys_of)[at](attention)
                texts = np.array([token.text for token in tokens], object)
                frame.insert(4 + at, f"{axis}_token", texts[frame[axis]])
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def to_xarray(self) -> dict[str, Any]:
        """`Attention.to_xarray` of every sub-layer by its name, with the tokens as coordinates. Where all
        have one size, `xarray.concat(trace.to_xarray().values(), "layer")` joins them. Raises ImportError
        where xarray is not installed.

        ```python
        trace.to_xarray()["decoder.1.self"].swap_dims(key="key_token").sel(head=7, key_token=" Hill")
        ```
        """
        return {
            one.name: one.to_xarray(self.queries_of(one), self.keys_of(one))
            for one in self.attention
        }

    @at_border
    def save(self, path: str | Path) -> None:
        """Writes the whole trace to a file, which `load_trace` reads. A file of that name is replaced once
        the new one is whole."""
        save_trace(self, Path(path))

    def check(self) -> float:
        """Largest |recomputed - recorded| over attention outputs and norms. Computed once."""
        if not self.is_checked:
            records: tuple[Attention | NormRecord, ...] = (*self.attention, *proven(self.norms))
            vars(self)[_CHECK] = largest(record.check() for record in records)
        return float(vars(self)[_CHECK])

    @property
    def is_checked(self) -> bool:
        """Whether `check` has its answer already."""
        return _CHECK in vars(self)

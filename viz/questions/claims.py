"""What is to be seen in the heads of an example: its own words in the unchanged run; in a changed run what
became of them, from that run's numbers. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from weakref import ref

import numpy as np
from cachetools import LRUCache, cached

from model.nn.intervention import Intervention
from model.nn.places import Place, head_label
from model.trace.blocks import of_query
from model.trace.records import Token
from model.trace.trace import Trace
from viz.explorer.message import HeadClaim, LinkedWords, Ring
from viz.notation.words import sentences_of
from viz.questions.question import token_name
from viz.state.link import View
from viz.state.presets import EXAMPLES, SentenceExample

say = sentences_of("questions.claims")

_ORDINALS = {"first": 0, "second": 1, "third": 2, "last": -1}
_NAMED = re.compile(
    r"(?:(?P<ordinal>first|second|third|last) )?“(?P<token>[^”]+)”"
    r"|(?P<last_token>the last token)"
    r"|(?P<first_column>the first column)"
    r"|(?P<diagonal>(?:just (?P<side>below|above) )?the diagonal)"
    r"|L(?P<layer>\d+)H(?P<head>\d+)"
    r"|head (?P<beside>\d+) of the same layer"
    r"|heads of layer (?P<other_layer>\d+)",
    re.IGNORECASE,
)
_SIDES = {None: 0, "below": -1, "above": 1}


def claims(
    view: View,
    before: Trace,
    after: Trace,
    intervention: Intervention,
    examples: Sequence[SentenceExample] = EXAMPLES,
) -> tuple[HeadClaim, ...]:
    """One for each example with the sentence and model of a view; before and after: the unchanged run and
    the one that is shown, which may be the same."""
    asked = view.text, view.model, view.target
    views = ((one, one.view) for one in examples)
    here = [one for one, its in views if (its.text, its.model, its.target) == asked]
    if after is before:
        return tuple(_own_claim(example, before) for example in here)
    return tuple(changed_claim(example.view, before, after, intervention) for example in here)


@cached(LRUCache(64), key=lambda example, trace: (example, ref(trace)), lock=Lock())
def _own_claim(example: SentenceExample, trace: Trace) -> HeadClaim:
    view = example.view
    words = tuple(_linked(example.look_for, ClaimFinder(view, trace)))
    return HeadClaim(view.place, view.head, say("look"), words)


def _linked(text: str, named: "ClaimFinder") -> Iterator[LinkedWords]:
    """The text in pieces; those that name something which can be ringed or opened are links."""
    end = 0
    for match in _NAMED.finditer(text):
        link = named.link(match)
        if link is not None:
            yield LinkedWords(text[end : match.start()])
            yield link
            end = match.end()
    yield LinkedWords(text[end:])


@dataclass(frozen=True)
class ClaimFinder:
    """Finds in one head of one run what the words of an example name."""

    view: View
    trace: Trace

    def link(self, match: re.Match[str]) -> LinkedWords | None:
        """None where it is unclear which cell, row or head is meant."""
        kinds, text = match.groupdict(), match[0]
        if kinds["last_token"]:
            return LinkedWords(text, (Ring(query=len(self.queries) - 1),))
        if kinds["first_column"]:
            return LinkedWords(text, (Ring(key=0),))
        if kinds["diagonal"]:
            side = kinds["side"]
            return LinkedWords(text, (Ring(diagonal=_SIDES[side and side.lower()]),))
        if kinds["token"]:
            ring = self._ring(kinds["token"], kinds["ordinal"])
            return None if ring is None else LinkedWords(text, (ring,))
        return self._head(kinds, text)

    @property
    def queries(self) -> Sequence[Token]:
        return self.trace.queries_of(self.trace.find(self.view.place))

    @property
    def keys(self) -> Sequence[Token]:
        return self.trace.keys_of(self.trace.find(self.view.place))

    def _ring(self, token: str, ordinal: str | None) -> Ring | None:
        """Where a token stands: the row of the chosen query, the cell of the chosen key; the row of one that
        is counted; the column of one that the tokenizer added; else the cell in the chosen query's row."""
        rows, columns = _positions(token, self.queries), _positions(token, self.keys)
        query, key = self.view.query, self.view.key
        if ordinal:
            place = _ORDINALS[ordinal.lower()]
            return Ring(query=rows[place]) if -1 <= place < len(rows) and rows else None
        if columns and self.keys[columns[0]].special:
            return Ring(key=columns[0])
        if key in columns and key != query:
            return Ring(query=query, key=key)
        if query in rows:
            return Ring(query=query)
        if len(columns) == 1:
            return Ring(query=query, key=columns[0])
        return Ring(query=rows[0]) if len(rows) == 1 else None

    def _head(self, kinds: dict[str, str | None], text: str) -> LinkedWords | None:
        """A head by its name, one beside the chosen one, or the same number in another layer."""
        chosen = Place.named(self.view.place)
        layer = kinds["layer"] or kinds["other_layer"] or str(chosen.layer)
        head = kinds["head"] or kinds["beside"] or str(self.view.head)
        place = replace(chosen, layer=int(layer)).name
        known = {one.name: one.heads for one in self.trace.attention}
        return LinkedWords(text, (), place, int(head)) if int(head) < known.get(place, 0) else None


def _positions(text: str, tokens: Sequence[Token]) -> list[int]:
    return [at for at, token in enumerate(tokens) if token.text.strip() == text]


def changed_claim(view: View, before: Trace, after: Trace, intervention: Intervention) -> HeadClaim:
    """What became of an example's cell: its weight before and after, and where its row is largest now."""
    attention, head = after.find(view.place), view.head
    row = of_query(attention, view.query).weights(head)[0]
    unchanged = of_query(before.find(view.place), view.query).weights(head)[0]
    was, now = float(unchanged[view.key]), row[view.key]
    queries, keys = after.queries_of(attention), after.keys_of(attention)
    asking = LinkedWords(token_name(queries[view.query], view.query), (Ring(query=view.query),))

    def named(key: int) -> LinkedWords:
        return LinkedWords(token_name(keys[key], key), (Ring(view.query, key),))

    wanted, largest = named(view.key), int(row.argmax())
    alike = int(np.isclose(row, row[largest], rtol=1e-4).sum())
    start = (LinkedWords(say("row", head_label=head_label((view.place, head)))), asking)
    earlier = (wanted, LinkedWords(say("gets_before_change", now=now, was=was)))
    rest: tuple[LinkedWords, ...]
    if row[largest] == 0:
        lost = LinkedWords(say("got_before_change", was=was))
        rest = (LinkedWords(say("attends_nothing_every")), wanted, lost)
    elif alike > 1:
        rest = (LinkedWords(f" gives {alike} tokens {row[largest]:.2f} each. "), *earlier)
    elif largest == view.key:
        still = LinkedWords(f": {now:.2f}, before the change {was:.2f}.")
        rest = (LinkedWords(say("still_gives_largest")), wanted, still)
    else:
        to = (
            LinkedWords(say("gives_largest_weight")),
            named(largest),
            LinkedWords(f": {row[largest]:.2f}. "),
        )
        rest = (*to, *earlier)
    zeroed = (view.place, head) in intervention.ablated
    off = (LinkedWords(say("output_head_set")),) if zeroed else ()
    return HeadClaim(view.place, head, "After the change.", (*start, *rest, *off))

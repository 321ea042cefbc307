"""The address that the browser shows: the one place that reads and writes it, part by part.

A request that the browser sent before it heard of the newest address carries an earlier one. It is not taken
for a link that somebody opened, and the next writing puts it right. The browser takes addresses in the order
in which they were told: a request with one shows that it has left those before.
"""

import time
from collections.abc import Set
from dataclasses import dataclass, replace

import streamlit as st
from streamlit.runtime.state.session_state_proxy import get_session_state

LATE = 5.0  # seconds for which a link may carry what has been replaced
EARLIER = 50  # addresses that are kept
_PARTS = "address-parts"  # session state: a part's name -> _Part

LinkValues = dict[str, str]


@dataclass(frozen=True)
class _Part:
    said: LinkValues
    earlier: tuple[tuple[LinkValues, float], ...] = ()  # and when it was replaced
    names: frozenset[str] = frozenset()  # its parameters, where it stands in the address


def read(names: Set[str]) -> LinkValues:
    """What the address of this request says of these parameters."""
    return {name: st.query_params[name] for name in st.query_params if name in names}


def tell(part: str, said: LinkValues, names: Set[str] = frozenset()) -> None:
    """Notes what the browser is told of a part: links that carry it, or its parameters in the address."""
    before = _parts().get(part)
    earlier = () if before is None else _recent(before)
    if before is not None and before.said != said:
        earlier = (*earlier[-EARLIER:], (before.said, time.monotonic()))
    st.session_state[_PARTS] = _parts() | {part: _Part(said, earlier, frozenset(names))}


def write(part: str, said: LinkValues, names: Set[str]) -> None:
    """Makes the address say this of a part from now on."""
    tell(part, said, names)
    say(said, names)


def say(said: LinkValues, names: Set[str]) -> None:
    """Makes the address say this of these parameters, at once: each address that the browser hears of is an
    entry of its history. Others stay as they are: a parameter that is bound to a widget may not be written
    at all."""
    written = read(names)
    if said == written:
        return
    with get_session_state().query_params() as parameters:
        for name in written.keys() - said.keys():
            parameters.discard_param_no_forward_msg(name)
        parameters.update(said)


def put_right() -> None:
    """Makes the address say of every part what it was told last."""
    parts = [part for part in _parts().values() if part.names]
    said = {name: value for part in parts for name, value in part.said.items()}
    say(said, {name for part in parts for name in part.names})


def says(part: str) -> LinkValues | None:
    """What the browser was told last; None before."""
    known = _parts().get(part)
    return None if known is None else known.said


def knows(part: str, written: LinkValues) -> bool:
    """Whether the browser was told this last, or before: where the request may not know better."""
    known = _parts().get(part)
    if known is None:
        return False
    earlier = _recent(known)
    told = [*(said for said, _ in earlier), known.said]
    if written not in told:
        return False
    st.session_state[_PARTS] = _parts() | {
        part: replace(known, earlier=earlier[told.index(written) :])
    }
    return True


def _parts() -> dict[str, _Part]:
    parts: dict[str, _Part] = st.session_state.get(_PARTS, {})
    return parts


def _recent(part: _Part) -> tuple[tuple[LinkValues, float], ...]:
    """What it said before: all that stood in the address; of links what they have carried until shortly."""
    now = time.monotonic()
    return tuple((said, when) for said, when in part.earlier if part.names or now - when < LATE)

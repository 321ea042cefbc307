"""What each head of a model does over a whole corpus, and not on one sentence only.

`profile(model, corpus)` runs a model over a text of any length and adds up, for every head, where its weight
goes and what it carries. A profile takes the same memory for a thousand tokens and for a thousand million.

All sums are sums of whole numbers (fixed-point), so the order in which parts are added does not matter:
profiles of parts add up to the profile of the whole, bit for bit.

The names below are the public ones. They need pyarrow, which comes with the extra “profile”, and are imported
at first use.
"""

from typing import TYPE_CHECKING

from model.system.later import later

if TYPE_CHECKING:
    from model.profile.corpus_profile import Profile, open_profile
    from model.profile.run import profile
    from model.profile.searching import labelled, search

__all__ = ["Profile", "labelled", "open_profile", "profile", "search"]

__getattr__, __dir__ = later(
    __name__,
    {
        "Profile": "corpus_profile",
        "labelled": "searching",
        "open_profile": "corpus_profile",
        "profile": "run",
        "search": "searching",
    },
    needs="pyarrow",
)

"""The heart of the screen: one attention layer, its heads, stages and cells switched in the browser.

Python sends a layer's recorded Q and K once, V and output when they are shown. The browser derives scores,
scaled and masked scores, weights and output from them, so a switch of head, stage or cell never waits for
the server. It reports afterwards what the reader chose.

`component` mounts it in a page of Streamlit's, `viz.notebook` in a notebook. Nothing else here knows either.
"""

from viz.explorer.message import payload
from viz.explorer.selection import Selection

__all__ = ["Selection", "payload"]

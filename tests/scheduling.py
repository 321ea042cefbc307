"""Which tests of a run in several processes go to the same process."""

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).resolve().parents[1]
BY_TEST = ("tests/browser/", "tests/pages/", "tests/viz/")  # what these share, every process has
GROUP = re.compile(r'xdist_group\("(.+?)"\)')


@cache
def group_of(file: str) -> str | None:
    """The group that a file of tests asks for."""
    named = GROUP.search((ROOT / file).read_text(encoding="utf-8"))
    return named and named[1]


class ByFile(LoadScopeScheduling):
    """A file is tested by one process, which makes its models and clusters once; the files of a group too.
    xdist's own groups are lost on the way with this version of pytest."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return group_of(file) or (nodeid if file.startswith(BY_TEST) else file)

"""A Python that starts with this folder on its path reaches no other machine: what it tries is refused, and
written to the file that WAY_OUT names."""

import os
import sys
from pathlib import Path

from tests.way_out import guard

sys.addaudithook(guard(Path(os.environ["WAY_OUT"]), programs=False))

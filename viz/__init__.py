"""Everything seen. Imported before numpy where the server is started, so that numpy's matrix products stay
in the thread that asks: they are small here, and threads that wait for each other cost up to 25 times the
work (measured on the check of 1,024 tokens). PyTorch's passes keep all cores."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

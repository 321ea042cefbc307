"""What the package reads when it is imported."""

import subprocess
import sys

from tests.server import REPOSITORY


def test_the_package_its_models_the_server_and_its_first_page_are_imported_without_torch() -> None:
    """The server answers, and its frame is drawn, before torch has started, which takes seconds."""
    names = "model, model.loading.registry, viz.server.asgi, viz.shell.page, viz.views.home.explore"
    said = f"import {names}, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", said], cwd=REPOSITORY, check=True, timeout=300)


def test_a_shipped_model_is_loaded_without_the_compiler_of_torch() -> None:
    """PyTorch imports it where a normal number is drawn on `meta`; that takes longer than all the rest."""
    said = "import model, sys; model.load_model('house-gpt'); exit('torch._dynamo' in sys.modules)"
    subprocess.run([sys.executable, "-c", said], cwd=REPOSITORY, check=True, timeout=300)

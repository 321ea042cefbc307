"""What the package reads when it is imported."""

import subprocess
import sys

from tests.server import REPOSITORY


def test_the_package_its_models_and_the_server_are_imported_without_torch() -> None:
    """A page is drawn before torch has started, which takes seconds."""
    said = "import model, model.loading.registry, viz.server.asgi, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", said], cwd=REPOSITORY, check=True, timeout=300)

"""The head of a real Ray cluster dies, or the network to the whole cluster is cut: what runs goes on, what
cannot be asked is a sentence, and afterwards all is as before."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from tests.model.serving.cluster.machines import Machines, Stopped, remove  # before Ray is imported

import psutil  # isort: skip
from model import load_model
from model.serving.cluster import asking
from model.serving.cluster.actors import ClusterError
from model.serving.cluster.cluster_engine import ClusterEngine
from model.system import cluster
from tests.model.serving.cluster.test_faults import NAME, process_of, weights

pytestmark = [pytest.mark.ray, pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore")]
TEXTS = ("The cat sat", "Anna saw a dog", "Tom saw a dog", "Tom Hill saw a red ball")


@pytest.fixture(scope="module")
def expected() -> dict[str, np.ndarray]:
    model = load_model(NAME)
    return {text: model.trace(text).attention[1].weights(0) for text in TEXTS}


def test_where_the_network_is_cut_a_sentence_says_so_and_all_goes_on_when_it_is_back(
    machines: Machines, replica: Callable[..., ClusterEngine], expected: dict[str, np.ndarray]
) -> None:
    """Nothing of the cluster answers, as behind a cable that is pulled out."""
    engine = replica()
    assert np.array_equal(weights(engine, TEXTS[0]), expected[TEXTS[0]])
    processes = [process_of(engine), *_all_of(machines)]
    with ExitStack() as stopped:
        for process in processes:
            stopped.enter_context(Stopped(process))
        with impatient(), pytest.raises(ClusterError, match="cannot be reached now"):
            weights(engine, TEXTS[1])
        assert np.array_equal(weights(engine, TEXTS[0]), expected[TEXTS[0]])  # it was read before
    assert np.array_equal(weights(engine, TEXTS[1]), expected[TEXTS[1]])


def test_where_the_head_dies_loaded_models_go_on_and_a_new_head_is_joined(
    machines: Machines,
    replica: Callable[..., ClusterEngine],
    expected: dict[str, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = replica()
    assert np.array_equal(weights(engine, TEXTS[0]), expected[TEXTS[0]])
    before = process_of(engine)
    head, other = machines.started
    head._kill_process_type("gcs_server", check_alive=False, allow_graceful=False)
    assert np.array_equal(weights(engine, TEXTS[2]), expected[TEXTS[2]])
    remove(other, before)
    remove(head)
    port = int(machines.address.rpartition(":")[2])
    machines.started, machines.address = [], ""
    machines.start(100, gcs_server_port=port)
    machines.start(1600)
    found = weights(engine, TEXTS[3])
    assert np.allclose(
        found, expected[TEXTS[3]], rtol=0, atol=1e-6
    )  # another process, which may round otherwise
    assert process_of(engine) != before


@contextmanager
def impatient() -> Iterator[None]:
    """Who gets no answer is told so within seconds; afterwards a slow machine has its time again."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asking, "SECONDS_SILENT", 1)
        patched.setattr(asking, "SECONDS_TO_COME_BACK", 5)
        patched.setattr(cluster, "SECONDS_FOR_HEAD", 2)
        yield


def _all_of(machines: Machines) -> list[int]:
    """The processes of all machines, those that they have started too."""
    own = [
        one.process.pid
        for machine in machines.started
        for kind in machine.all_processes.values()
        for one in kind
    ]
    below = [child.pid for pid in own for child in psutil.Process(pid).children(recursive=True)]
    return [*own, *below]

"""A machine of a Ray cluster, as processes of this computer that listen on 127.0.0.1 alone."""

import socket
from contextlib import ExitStack
from pathlib import Path

from ray._private.node import Node
from ray._private.parameter import RayParams

SHARED_MEMORY = 200_000_000  # bytes of what is on its way between processes
PORTS = (
    "metrics_agent_port",
    "metrics_export_port",
    "dashboard_agent_listen_port",
    "runtime_env_agent_port",
)


class Machine(Node):
    """Ray's own `ray.init` ends where its agents need more than 15 seconds for their imports, as on a busy
    computer. It waits for files in which they write their ports; here the ports are chosen before."""

    @classmethod
    def start(cls, folder: str, cpus: int, address: str | None = None) -> "Machine":
        """Starts a machine of a cluster.

        Args:
            folder: for sockets and logs.
            cpus: that it offers.
            address: of the cluster that it joins; None: it is the first of one.
        """
        params = RayParams(
            node_ip_address="127.0.0.1",
            gcs_address=address,
            num_cpus=cpus,
            object_store_memory=SHARED_MEMORY,
            include_dashboard=False,
            include_log_monitor=False,
            no_monitor=True,  # nothing scales here
            temp_dir=folder,
            **_free_ports(),
        )
        return cls(params, head=address is None, shutdown_at_exit=False, spawn_reaper=True)

    def start_ray_processes(self) -> None:
        """Writes the ports first."""
        for name in PORTS:
            file = Path(self._session_dir) / f"{name}_{self._node_id}"
            file.write_text(str(getattr(self._ray_params, name)))
        super().start_ray_processes()


def _free_ports() -> dict[str, int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in PORTS]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return {name: one.getsockname()[1] for name, one in zip(PORTS, sockets, strict=True)}

"""Arms in worker processes: servers to connect to, which only the parent process starts and stops."""

from collections.abc import Sequence
from dataclasses import replace

from fuzz.errors import ServerError
from fuzz.servers.account import server_account
from fuzz.servers.arm import Arm
from fuzz.servers.cluster import Cluster
from fuzz.servers.processes import runs_in


class AttachedCluster(Cluster):
    """A cluster that another process owns. It pickles, and never starts or stops a server."""

    def __init__(self, cluster: Cluster) -> None:
        """Copy the server's address and paths, without the owner's state."""
        self.build = cluster.build
        self.name = cluster.name
        self.port = cluster.port
        self.data = cluster.data
        self.log = cluster.log
        self.socket_dir = cluster.socket_dir

    @property
    def pid(self) -> int:
        """Return the postmaster's process number, which its owner may have changed. Raises ServerError."""
        try:
            with server_account().file_access():
                return int((self.data / "postmaster.pid").read_text().splitlines()[0])
        except (OSError, ValueError, IndexError) as error:
            raise ServerError(f"the server of arm {self.name} is down") from error

    def alive(self) -> bool:
        """Return whether the postmaster runs."""
        try:
            return runs_in(self.pid, self.data)
        except ServerError:
            return False

    def restart(self, mode: str = "fast") -> None:
        """Raise ServerError, because only the owner restarts the server."""
        raise ServerError(f"the server of arm {self.name} is down")


def attached(arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return the arms in the form for worker processes."""
    return tuple(replace(arm, cluster=AttachedCluster(arm.cluster)) for arm in arms)


def running(arm: Arm) -> int:
    """Return the process number of the arm's postmaster. Raises ServerError if it is down."""
    if not arm.cluster.alive():
        raise ServerError(f"the server of arm {arm.name} is down")
    return arm.cluster.pid

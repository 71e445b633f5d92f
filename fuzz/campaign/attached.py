"""An arm as a worker process sees it: a server to talk to, whose starting and stopping is the parent's business."""

from collections.abc import Sequence
from dataclasses import replace

from fuzz.errors import ServerError
from fuzz.servers.account import server_account
from fuzz.servers.arm import Arm
from fuzz.servers.cluster import Cluster
from fuzz.servers.processes import runs_in


class AttachedCluster(Cluster):
    """A cluster that another process owns. Unlike its owner's object it pickles; it never starts or stops a server."""

    def __init__(self, cluster: Cluster) -> None:
        """Take over where the server is, not the server: nothing of the owner's state is needed."""
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
        """Tell whether the postmaster runs."""
        try:
            return runs_in(self.pid, self.data)
        except ServerError:
            return False

    def restart(self, mode: str = "fast") -> None:
        """Raise ServerError: the owner restarts it."""
        raise ServerError(f"the server of arm {self.name} is down")


def attached(arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return the arms as a worker process may have them."""
    return tuple(replace(arm, cluster=AttachedCluster(arm.cluster)) for arm in arms)


def running(arm: Arm) -> int:
    """Return the process number of the arm's postmaster. Raises ServerError if it is down."""
    if not arm.cluster.alive():
        raise ServerError(f"the server of arm {arm.name} is down")
    return arm.cluster.pid

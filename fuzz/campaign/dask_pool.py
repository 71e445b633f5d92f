"""Pool of workers of a Dask cluster, in place of local processes. The campaign keeps schedule and store.

A worker joins and leaves at any time. Each process first prepares itself (`fuzz.campaign.remote`), and then has one job
at a time, which no other worker takes over: the job of a worker that is gone is returned as `LostJob`. Results of a
worker that Dask has given up are ignored. So each result counts once.
"""

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from hashlib import sha256
from tempfile import TemporaryDirectory
from typing import Any, Final

from fuzz import documents
from fuzz.campaign import remote
from fuzz.campaign.code_digest import code_digest
from fuzz.campaign.database import outlasted
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import Done, LostJob
from fuzz.campaign.remote import Answer, Preparation, RemoteWork, Subject
from fuzz.campaign.schedule import Job, RangeResult, Reduction, ReductionResult, Result, Retry
from fuzz.campaign.store import Store
from fuzz.campaign.worker import ERRORS, EXAMPLES, append
from fuzz.errors import ServerError
from fuzz.servers import git
from fuzz.servers.arm import ArmSpec
from fuzz.triage.findings import StoredFinding
from fuzz.triage.triage import Triage
from oracles.model.case import Case

# Of the HTTP server that each of Dask's processes has. By default it is port 8787, open to other machines.
HTTP_ADDRESS: Final = "127.0.0.1:0"
LOCAL: Final = "local"  # in place of an address: a cluster of its own on this machine
_TICK: Final = 0.25  # seconds
_POLL: Final = 0.01  # seconds between readings of the states of futures, which need no message
_ANSWER_TIMEOUT: Final = 30.0  # seconds in which the scheduler answers
_END: Final = 20.0  # seconds in which workers stop their servers
_AGAIN: Final = 20.0  # seconds between preparations of a worker that waits
_EMPTY: Final = 600.0  # seconds without any worker that can run the campaign, after which it ends
_CRITICAL: Final = 50  # of the module logging: the pool reports all that the user must know
TCP_TIMEOUT: Final = "5 minutes"  # without an answer, after which a connection is given up
_CONNECT_TIMEOUT: Final = "2 minutes"  # of a further connection; a network may be cut for a minute
_NO_CASE: Final = Case("", (), ())
_QUIET: Final = ("distributed", "distributed.client", "distributed.scheduler", "distributed.worker", "tornado")


def remote_work(store: Store, plan: Plan, specs: Sequence[ArmSpec], *, same_build: bool) -> RemoteWork:
    """Return the setup of workers on other machines."""
    builds = {arm: facts["build"] for arm, facts in store.arms.items()}
    lasting = documents.dumps(replace(plan, minutes=None, cases=None))
    words = (socket.gethostname(), str(store.directory), lasting, repr(builds))
    return RemoteWork(
        name=sha256("\0".join(words).encode()).hexdigest()[:12],
        number=store.directory.name,
        specs=tuple(specs),
        builds=builds,
        same_build=same_build,
        plan=plan,
        options=plan.replay_options(),
        records=store.arms,
        code=code_digest(),
    )


def _distributed() -> Any:
    """Import Dask, whose log is silent then."""
    import dask  # not at the top, because the settings come before the import of distributed

    dask.config.set(
        {
            "logging": dict.fromkeys(_QUIET, "critical"),
            "distributed.scheduler.allowed-failures": 0,
            "distributed.comm.timeouts.tcp": TCP_TIMEOUT,
            "distributed.comm.timeouts.connect": _CONNECT_TIMEOUT,
        }
    )
    import distributed

    return distributed


@contextmanager
def connected(where: str, workers: int) -> Iterator[Any]:
    """Connect to the scheduler at an address, or start a cluster with some workers on this machine. Yield the client.

    Raises ServerError if no scheduler answers.
    """
    distributed = _distributed()
    with ExitStack() as stack:
        cluster: Any = where
        if where == LOCAL:
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    memory_limit=0,  # servers, not Dask's data, take the memory
                    dashboard_address=HTTP_ADDRESS,
                    worker_dashboard_address=HTTP_ADDRESS,
                    silence_logs=_CRITICAL,
                    security=security(),
                    local_directory=stack.enter_context(TemporaryDirectory(prefix="pgduel-dask-")),
                )
            )
        try:
            client = distributed.Client(cluster, timeout=_ANSWER_TIMEOUT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ServerError(
                f"no Dask scheduler answers at {where} ({error}); start one, or give its address"
            ) from error
        yield stack.enter_context(client)


def security() -> Any:
    """Return certificates of a new authority, because other users of the machine can open the ports.

    Dask's own certificates are valid from the moment of their creation, which a clock that is set back precedes.
    """
    import trustme  # not at the top, because packages of this extra need not be installed

    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    chain = "".join(pem.bytes().decode() for pem in certificate.cert_chain_pems)
    files = {"cert": chain, "key": certificate.private_key_pem.bytes().decode()}
    roles = {f"tls_{role}_{file}": pem for role in ("client", "scheduler", "worker") for file, pem in files.items()}
    ca = authority.cert_pem.bytes().decode()
    return _distributed().Security(require_encryption=True, tls_ca_file=ca, **roles)


class _State(Enum):
    """The state of a worker."""

    PREPARING = auto()
    WAITING = auto()  # for another campaign's end
    IDLE = auto()
    BUSY = auto()
    REFUSED = auto()


@dataclass(slots=True)
class _Worker:
    """A worker, by its address, and the future of its preparation or job."""

    address: str
    state: _State
    future: Any = None
    job: Job | None = None
    again: float = 0.0  # time of the next preparation of a worker that waits


class DaskPool:
    """The workers of a Dask cluster. Use as a context manager, which stops their servers."""

    def __init__(
        self, client: Any, work: RemoteWork, store: Store, say: Callable[[str], None], interrupted: Callable[[], object]
    ) -> None:
        """`client` is that of `connected`. `interrupted` returns whether the user wants to end the campaign."""
        self._client = client
        self._address: str = client.scheduler.address
        self._work = work
        self._store = store
        self._say = say
        self._interrupted = interrupted
        self._triage = Triage(work.options, work.records, store)
        # by fingerprint: findings whose place another case may take; without cases, which would travel with each job
        self._explained: dict[str, StoredFinding] = {}
        for found in store.findings():
            self._note(found)
        self._workers: dict[str, _Worker] = {}
        self._packs: dict[tuple[str, ...], bytes] = {}  # by trees
        self._refusal = ""
        self._renewed_at = 0.0
        self._empty_since: float | None = None

    def __enter__(self) -> "DaskPool":
        """Wait for the first worker that is prepared, or an interrupt. Raises ServerError."""
        while not self.idle and not self._interrupted():
            self.wait(_TICK)
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(ServerError):  # then the scheduler is gone, and workers stop their servers themselves
            self.stop()
            ready = [each.address for each in self._workers.values() if each.state in (_State.IDLE, _State.BUSY)]
            released = [self._submit(address, remote.release, self._work.name) for address in ready]
            self._await(released, _END, all)

    @property
    def idle(self) -> int:
        """Return the number of workers that wait for a job."""
        return sum(each.state is _State.IDLE for each in self._workers.values())

    @property
    def jobs(self) -> list[Job]:
        """Return the running jobs."""
        return [each.job for each in self._workers.values() if each.job is not None]

    def stop(self) -> None:
        """Request an early end of all running jobs. Raises ServerError."""
        if busy := [each.address for each in self._workers.values() if each.state is _State.BUSY]:
            with self._scheduler():  # a worker that is lost meanwhile cannot answer
                self._client.run(remote.stop, self._work.name, workers=busy, on_error="ignore")

    def submit(self, job: Job) -> None:
        """Give a job to an idle worker. Raises ServerError."""
        worker = next(each for each in self._workers.values() if each.state is _State.IDLE)
        subject: Subject = None
        if isinstance(job, Reduction):
            subject = self._store.finding(job.fingerprint)
        elif isinstance(job, Retry):
            subject = self._store.doubt(job.doubt)
        explained = tuple(self._explained.values())
        worker.future = self._submit(worker.address, remote.execute, self._work.name, job, subject, explained)
        worker.state, worker.job = _State.BUSY, job

    def _submit(self, address: str, function: Callable[..., object], *arguments: object) -> Any:
        """Submit a call to one worker. No other takes it over, because the owner of a job decides what follows."""
        with self._scheduler():
            return self._client.submit(
                function, *arguments, workers=[address], allow_other_workers=False, pure=False, retries=0
            )

    @contextmanager
    def _scheduler(self) -> Iterator[None]:
        """Raise ServerError if the scheduler is gone. Dask cancels all futures then, and workers end."""
        try:
            if self._client.status == "running":
                yield
                return
            reason = "the connection was lost"
        except (OSError, CancelledError) as error:
            reason = str(error)
        raise ServerError(f"the Dask scheduler at {self._address} is gone ({reason}); start it again")

    def wait(self, timeout: float) -> list[Done[Job, Result] | LostJob[Job]]:
        """Return the jobs that have ended, after at most `timeout` seconds without one.

        Workers that joined are prepared. Raises ServerError without a scheduler, and after a while without workers.
        """
        ended = self._renewed()
        self._require_workers()
        if not ended:
            self._await([each.future for each in self._workers.values() if each.future is not None], timeout, any)
        for worker in list(self._workers.values()):
            if worker.future is not None and worker.future.status != "pending":
                ended += self._taken(worker)
        return ended

    def _await(self, futures: list[Any], seconds: float, which: Callable[[Iterable[bool]], bool]) -> None:
        """Wait until any or all futures have ended, or the time is over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not (futures and which(each.status != "pending" for each in futures)):
            time.sleep(_POLL)

    def _renewed(self) -> list[Done[Job, Result] | LostJob[Job]]:
        """Prepare the workers that joined, and return the jobs of those that are gone, several times a second."""
        if time.monotonic() - self._renewed_at < _TICK:
            return []
        self._renewed_at = time.monotonic()
        with self._scheduler():
            present = self._client.nthreads()
        lost = [self._workers.pop(address) for address in self._workers.keys() - present.keys()]
        for address in sorted(present.keys() - self._workers.keys()):
            self._workers[address] = _Worker(
                address, _State.PREPARING, self._submit(address, remote.prepare, self._work)
            )
        for worker in self._workers.values():
            if worker.state is _State.WAITING and worker.future is None and time.monotonic() > worker.again:
                worker.future = self._submit(worker.address, remote.prepare, self._work)
        return [LostJob(each.job, None, each.address) for each in lost if each.job is not None]

    def _require_workers(self) -> None:
        """Raise ServerError if for a while, there is no worker, or none that can run the campaign."""
        states = {each.state for each in self._workers.values()}
        if states - {_State.REFUSED}:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = time.monotonic()
            self._say(f"waiting for {'other ' if states else ''}workers of {self._address}")
        elif time.monotonic() - self._empty_since > _EMPTY:
            if states:
                raise ServerError(f"no worker of {self._address} can run this campaign: {self._refusal}")
            raise ServerError(f"{self._address} has no workers; start some")

    def _taken(self, worker: _Worker) -> list[Done[Job, Result] | LostJob[Job]]:
        """Return the job that a worker has ended; nothing if it was its preparation."""
        job, future = worker.job, worker.future
        worker.job = worker.future = None
        with self._scheduler():
            outcome = self._outcome(worker, future)
        if isinstance(outcome, Preparation):
            self._take_preparation(worker, outcome)
        elif isinstance(outcome, Answer) and job is not None:
            done = Done(job, self._recorded(job, outcome))
            if fatal := _fatal(outcome):
                self._refuse(worker, fatal)
            elif outcome.prepared:
                worker.state = _State.IDLE
            else:  # its servers did not start again; the next renewal prepares it
                self._workers.pop(worker.address)
            return [done]
        else:  # it is not prepared any more: a new process has its address, or a job has failed
            self._workers.pop(worker.address)
        return [] if job is None else [LostJob(job, None, worker.address)]

    def _outcome(self, worker: _Worker, future: Any) -> object:
        """Return the result of a future that has ended, or None. Raises OSError, CancelledError."""
        if future.status == "cancelled":
            raise OSError("the connection was lost")
        try:
            if future.status == "finished":
                return future.result(timeout=_ANSWER_TIMEOUT)
            error = future.exception(timeout=_ANSWER_TIMEOUT)
        except TimeoutError:  # the worker went away before it sent the result
            return None
        if type(error).__name__ != "KilledWorker":
            self._say(f"worker {worker.address} failed: {error!r}")
        return None

    def _take_preparation(self, worker: _Worker, outcome: Preparation) -> None:
        if outcome.busy:
            if worker.state is not _State.WAITING:
                self._say(f"worker {worker.address} waits: {outcome.refusal}")
            worker.state, worker.again = _State.WAITING, time.monotonic() + _AGAIN
        elif outcome.refusal:
            self._refuse(worker, outcome.refusal)
        elif outcome.missing:
            if outcome.missing not in self._packs:
                self._packs[outcome.missing] = git.packed(outcome.missing)
            with self._scheduler(), suppress(TimeoutError):  # it went away, which the next renewal shows
                pack = self._client.scatter(self._packs[outcome.missing], workers=[worker.address], hash=False)
                worker.future = self._submit(worker.address, remote.prepare, self._work, pack)
        else:
            self._say(f"worker {worker.address} is ready")
            worker.state = _State.IDLE

    def _refuse(self, worker: _Worker, reason: str) -> None:
        """Give a worker no more jobs."""
        worker.state = _State.REFUSED
        self._refusal = f"{worker.address}: {reason}"
        self._say(f"worker {worker.address} is left out: {reason}")

    def _recorded(self, job: Job, answer: Answer) -> Result:
        """Write the results of a job to the store, and return its result in the form of a local worker."""
        new = [
            found.fingerprint for found, case_id, case in answer.found if self._store.add_finding(found, case_id, case)
        ]
        for found, case_id, case in answer.others:
            if self._store.finding(found.fingerprint).explained:  # another worker may have found one meanwhile
                self._store.replace_case(found, case_id, case)
                new.append(found.fingerprint)
        for fingerprint in new:
            outlasted(partial(self._triage.write, self._store.finding(fingerprint)), self._say)
        for write in answer.writes:
            write(self._store)
        if isinstance(job, Reduction):
            outlasted(partial(self._triage.write_with_notes, self._store.finding(job.fingerprint)), self._say)
            self._note(self._store.finding(job.fingerprint))
        for fingerprint in {found.fingerprint for found, *_ in answer.found} & self._explained.keys():
            self._note(self._store.finding(fingerprint))
        if answer.errors:
            outlasted(partial(append, self._store.directory / ERRORS, answer.errors), self._say)
        for line in answer.lines:
            self._say(line)
        return self._localized(answer, new)

    def _note(self, found: StoredFinding) -> None:
        """Note whether another case may take the place of a finding's case, or that it did."""
        self._explained.pop(found.finding.fingerprint, None)
        if found.explained and found.count < EXAMPLES:
            smallest = replace(found.least, case=_NO_CASE)
            self._explained[found.finding.fingerprint] = replace(found, case=_NO_CASE, smallest=smallest)

    def _localized(self, answer: Answer, new: list[str]) -> Result:
        """Return a result with the findings that are new in the store, and with paths of this machine."""

        def local(text: str) -> str:
            return text.replace(answer.directory, str(self._store.directory))

        result = answer.result
        if isinstance(result, RangeResult):
            failures = {kind: local(line) for kind, line in result.failures.items()}
            return replace(result, found=new, failures=failures, fatal=None)  # other workers execute the rest
        if isinstance(result, ReductionResult):
            return ReductionResult(local(result.note))
        return replace(result, found=tuple(new))


def _fatal(answer: Answer) -> str:
    """Return the reason why a worker cannot continue, for example a full disk; "" if it can."""
    return (answer.result.fatal or "") if isinstance(answer.result, RangeResult) else ""

"""Comparison of times: a query on two arms, in interleaved rounds, as the benches do it.

Times are those of servers of their own, built in flavor `release` and with the settings of benches, because assertions
in the server change times. They start with the first comparison, and stay until the end.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Final

import psycopg
from psycopg import sql

from fuzz import workdir
from fuzz.bench.bench import UNDISTURBED, Connection, connected
from fuzz.bench.measurement import milliseconds
from fuzz.bench.run import CONFIDENCE, LEAST_ROUNDS, measure_interleaved, median_ratio
from fuzz.errors import CaseError, first_line
from fuzz.pytest_plugin.checks import Failed, steps_of, unknown_setting
from fuzz.servers import Report
from fuzz.servers.arm import Arm, ArmSpec, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import flavor_named
from oracles.model.case import Kind, Step

_DATABASE: Final = "pgduel_timing"
_POINT: Final = ()


class Timing:
    """The servers of comparisons of times: two for each compared pair of arms and flavor."""

    def __init__(self, options: ArmOptions, stack: ExitStack, report: Report) -> None:
        """Servers are stopped at the end of the stack."""
        self._options = options
        self._stack = stack
        self._report = report
        self._specs: dict[str, dict[str, ArmSpec]] = {}  # flavor -> name of an arm -> arm
        self._opened: dict[tuple[str, ...], dict[str, Arm]] = {}  # flavor and sorted names -> servers by name

    def faster(
        self,
        *,
        scene: Sequence[str],
        query: str,
        arms: tuple[str | None, str | None],
        limit: float,
        rounds: int,
        seconds: float,
        flavor: str,
        settings: Mapping[str, str],
    ) -> tuple[float, float, float]:
        """Return the ratio of the second arm's time to the first one's, with its interval.

        `arms` are by default the first two. Raises Failed if the interval is not below the limit, PgduelError.
        """
        if rounds < LEAST_ROUNDS:
            raise CaseError(f"duel.faster compares at least {LEAST_ROUNDS} rounds, not {rounds}")
        statements = steps_of([query])
        if len(statements) != 1 or statements[0].kind is not Kind.QUERY:
            raise CaseError("duel.faster needs one query: SELECT, VALUES, TABLE or WITH")
        than, arm = self._two(flavor, arms)
        steps = steps_of(scene)
        with ExitStack() as stack:
            sessions = {each.name: stack.enter_context(_session(each)) for each in (than, arm)}
            _set(sessions, settings)
            for name, session in sessions.items():
                _execute(name, session, (*steps, *statements))  # the query, too, so that caches are warm

            def measure(_round: int, _point: tuple[int, ...], name: str) -> float:
                return milliseconds(sessions[name], statements[0].sql, seconds)

            samples = measure_interleaved([_POINT], tuple(sessions), rounds, measure)
        ours, theirs = (samples[_POINT, each.name] for each in (arm, than))
        ratio = median_ratio(ours, theirs)
        if ratio.high >= limit:
            raise Failed(
                f"{arm.name} is not shown to be faster than {than.name}: it takes {ratio.ratio:.3f} times as long, "
                f"{CONFIDENCE:.0%} interval {ratio.low:.3f} to {ratio.high:.3f}; it must end below {limit:g}\n"
                f"query: {statements[0].sql}\n"
                f"medians: {statistics.median(theirs):.4g} ms on {than.name}, "
                f"{statistics.median(ours):.4g} ms on {arm.name}, in {rounds} rounds of {seconds:g} s"
            )
        return ratio.ratio, ratio.low, ratio.high

    def _two(self, flavor: str, names: tuple[str | None, str | None]) -> tuple[Arm, ...]:
        """Return the servers of two arms, which are started on first use. Raises PgduelError."""
        if flavor not in self._specs:
            options = replace(self._options, flavor=flavor_named(flavor).name)
            self._specs[flavor] = {spec.name: spec for spec in options.specs(self._report)}
        specs = self._specs[flavor]
        than, arm = _names(tuple(specs), names)
        pair = (flavor, *sorted((than, arm)))
        if pair not in self._opened:
            opening = open_arms(
                [specs[than], specs[arm]],
                self._report,
                allow_same_build=self._options.same_build_wanted,
                settings=dict(UNDISTURBED),
                directory=workdir.clusters_on_disk(),
            )
            self._opened[pair] = {each.name: each for each in self._stack.enter_context(opening)}
        return self._opened[pair][than], self._opened[pair][arm]


def _names(arms: Sequence[str], wanted: tuple[str | None, str | None]) -> tuple[str, str]:
    """Return the names of two arms, by default the first two. Raises CaseError."""
    if len(arms) < 2:
        raise CaseError(f"duel.faster compares arms, but {arms[0]} is the only one; name another")
    for name in wanted:
        if name is not None and name not in arms:
            raise CaseError(f"no arm is called {name!r}; give one of {', '.join(arms)}")
    than, arm = wanted[0] or arms[0], wanted[1] or arms[1]
    if than == arm:
        raise CaseError(f"duel.faster compares {arm} with itself; name two arms")
    return than, arm


@contextmanager
def _session(arm: Arm) -> Iterator[Connection]:
    """Open a session in a new database, and drop it at the end."""
    database = sql.Identifier(_DATABASE)
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(database)
    with connected(arm) as admin:
        admin.execute(drop)
        admin.execute(sql.SQL("CREATE DATABASE {}").format(database))
        try:
            with connected(arm, _DATABASE) as session:
                yield session
        finally:
            admin.execute(drop)


def _set(sessions: Mapping[str, Connection], settings: Mapping[str, str]) -> None:
    """Set each setting on the arms that have it. Raises CaseError if none has it, or one refuses the value."""
    known = {
        arm: {name for (name,) in session.execute("SELECT lower(name) FROM pg_settings")}
        for arm, session in sessions.items()
    }
    for name, value in settings.items():
        having = [arm for arm in sessions if name.lower() in known[arm]]
        if not having:
            raise unknown_setting(name)
        for arm in having:
            try:
                sessions[arm].execute("SELECT set_config(%s, %s, false)", (name, value))
            except psycopg.Error as error:
                raise CaseError(f"{arm} refuses the setting {name} = {value!r}: {first_line(str(error))}") from error


def _execute(arm: str, session: Connection, steps: Sequence[Step]) -> None:
    """Execute the scene, and the query once. Raises Failed."""
    for step in steps:
        try:
            if step.kind is Kind.COPY_IN:
                with session.cursor() as cursor, cursor.copy(step.sql) as copy:
                    copy.write(step.copy_data or b"")
            else:
                session.execute(step.sql)
        except psycopg.Error as error:
            raise Failed(f"a statement fails on {arm}: {first_line(str(error))}\nstatement: {step.sql}") from error

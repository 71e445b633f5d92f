"""`pgduel corpus`: kept reproducers, which show whether an old fault returns."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fuzz import workdir
from fuzz.campaign.catalog import opened
from fuzz.cli import options
from fuzz.cli.app import app, say, write_json
from fuzz.cli.options import facts_of
from fuzz.cli.reported_finding import Named, progress, reported_finding
from fuzz.errors import PgduelError
from fuzz.execution.executor import Executor
from fuzz.report.terminal import display
from fuzz.servers.arm import Arm, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR
from fuzz.triage.corpus import Entry, entries, needless, place_for, reproducers, shown
from fuzz.triage.findings import StoredFinding
from fuzz.triage.reduction.problem import sort_key
from fuzz.triage.reproducer.reproducer import load
from fuzz.triage.triage import Triage, with_replay_command

corpora = typer.Typer(help="Keep and run reproducers of fixed faults, and of faults that all arms have.")
app.add_typer(corpora, name="corpus")

Corpus = Annotated[
    Path, typer.Option("--corpus", metavar="DIR", help="The corpus: `DIR/fixed/*.sql` and `DIR/upstream/*.sql`.")
]
CORPUS = workdir.PROJECT / "corpus"


@dataclass(frozen=True, slots=True)
class _Arms:
    """The running arms of the options, and an executor on them."""

    options: str  # command-line options that open them
    arms: tuple[Arm, ...]
    executor: Executor
    records: Mapping[str, Any]  # arm → recorded facts


@contextmanager
def _opened(given: ArmOptions) -> Iterator[_Arms]:
    with display(progress, None) as shown_there:
        specs = given.specs(shown_there.progress)
        with (
            open_arms(specs, shown_there.progress, allow_same_build=True) as arms,
            Executor(arms, "corpus") as executor,
        ):
            records = facts_of(specs, arms)
            yield _Arms(given.command_line(), arms, executor, records)


@corpora.command()
def run(
    *,
    corpus: Corpus = CORPUS,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    json_file: options.JsonFile = None,
) -> None:
    """Run each reproducer on the arms: those in `fixed` must show nothing, those in `upstream` must show on all arms.

    Exit status 1 if one does otherwise. Faults that a release newer than the known-good one fixed are reported as such.
    """
    wanted = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    kept = reproducers(corpus)
    with _opened(wanted.with_third_arm(say)) as there:
        found = []
        for entry in entries(kept, there.executor, there.arms):
            say(f"{entry.path}: {entry.remark}")
            found.append(entry)
    deviations = {str(entry.path): entry.deviation for entry in found if entry.deviation}
    mended = [str(entry.path) for entry in found if entry.fixed_upstream]
    say(f"{len(found)} reproducers, {len(deviations)} not as expected, {len(mended)} fixed upstream")
    write_json(json_file, {"reproducers": len(found), "complaints": deviations, "fixed_upstream": mended})
    raise typer.Exit(1 if deviations else 0)


@corpora.command()
def add(
    *,
    named: Named,
    corpus: Corpus = CORPUS,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
) -> None:
    """Keep a finding's reproducer, in the directory that fits the arms' present behaviour.

    It goes to `fixed` if no arm shows the finding, and to `upstream` if all do. If only some do, fix it first. A
    finding of a campaign has its own arms.
    """
    _require_own(corpus)
    given = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    with display(progress, None) as shown_there:
        reported = reported_finding(named, given, shown_there.progress)
        with reported.opened() as there, Executor(there.arms, "corpus") as executor:
            place = place_for(reported.fingerprint, shown(executor, there.arms, reported.case))
    path = corpus / place / f"{reported.fingerprint}.sql"
    _write(path, with_replay_command(reported.script, path, reported.options))
    say(f"{path}: {place}")


@corpora.command()
def minimize(
    *,
    corpus: Corpus = CORPUS,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
) -> None:
    """Reduce reproducers that show on the arms again, and delete those that a smaller one makes redundant.

    Fixed faults can be reduced only on arms that have them.
    """
    _require_own(corpus)
    kept = reproducers(corpus)
    with _opened(ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)) as there:
        found = [_smaller(there, entry) for entry in entries(kept, there.executor, there.arms)]
    for entry in needless(found):
        entry.path.unlink()
        say(f"{entry.path}: deleted, because a smaller one shows the same")


def _smaller(there: _Arms, entry: Entry) -> Entry:
    """Reduce a reproducer, and overwrite it if the result is smaller."""
    about = load(str(entry.path)).about
    if not entry.findings or about is None:
        return entry
    with tempfile.TemporaryDirectory() as directory, opened(Path(directory)) as store:
        found = StoredFinding(entry.findings[0], about.case_id, entry.case, 1, None, reduced=False)
        triage = Triage(there.options, there.records, store)
        smallest = triage.reduce(found, there.arms)
        if not smallest.shown or sort_key(smallest.case) >= sort_key(entry.case):
            return entry
        script = triage.path(found).read_text(encoding="utf-8")
        _write(entry.path, with_replay_command(script, entry.path, there.options))
    say(f"{entry.path}: {len(entry.case.all_steps)} statements are {len(smallest.case.all_steps)} now")
    return replace(entry, case=smallest.case, findings=(smallest.finding,))


def _require_own(corpus: Path) -> None:
    """Check that a corpus is not that of an installed pgduel. Raises PgduelError."""
    if corpus == CORPUS and not workdir.IS_CHECKOUT:
        raise PgduelError("the installed corpus cannot be changed; give --corpus a directory of your own")


def _write(path: Path, script: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, encoding="utf-8")
    except OSError as error:
        raise PgduelError(f"cannot write {path} ({error.strerror}); give --corpus a writable directory") from error

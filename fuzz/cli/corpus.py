"""`pgduel corpus`: reproducers that are kept, so that what was found once is not found again by users."""

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
from fuzz.cli.options import arms_json
from fuzz.cli.reported_finding import Named, progress, reported_finding
from fuzz.errors import PgduelError
from fuzz.execution.executor import Executor
from fuzz.report.terminal import display
from fuzz.servers.arm import Arm, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR
from fuzz.triage.corpus import Entry, entries, needless, place_for, shown
from fuzz.triage.reduction.problem import sort_key
from fuzz.triage.reproducer.load import load
from fuzz.triage.stored_finding import StoredFinding
from fuzz.triage.triage import Triage, with_replay_command

corpora = typer.Typer(help="Keep reproducers: of what was fixed, and of what all arms show alike.")
app.add_typer(corpora, name="corpus")

Corpus = Annotated[
    Path, typer.Option("--corpus", metavar="DIR", help="Where they are: DIR/fixed/*.sql and DIR/upstream/*.sql.")
]
CORPUS = workdir.PROJECT / "corpus"


@dataclass(frozen=True, slots=True)
class _Arms:
    """The arms asked for, running, and an executor on them."""

    options: str  # of a command line that opens them
    arms: tuple[Arm, ...]
    executor: Executor
    records: Mapping[str, Any]  # arm → what is recorded of it


@contextmanager
def _opened(given: ArmOptions) -> Iterator[_Arms]:
    with display(progress, None) as shown_there:
        specs = given.specs(shown_there.progress)
        with (
            open_arms(specs, shown_there.progress, allow_same_build=True) as arms,
            Executor(arms, "corpus") as executor,
        ):
            records = arms_json(specs, [arm.build.key for arm in arms])
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
    json_file: options.JsonFile = None,
) -> None:
    """Try each reproducer on the arms: what was fixed must show nothing, what is upstream's must show on all.

    Exit status 1 where it is otherwise. What a release newer than the known-good one has mended is fixed upstream.
    """
    with _opened(ArmOptions.given(base, series, repo, commits, arm, flavor, manifest).with_referee()) as there:
        found = []
        for entry in entries(corpus, there.executor, there.arms):
            say(f"{entry.path}: {entry.remark}")
            found.append(entry)
    complaints = {str(entry.path): entry.complaint for entry in found if entry.complaint}
    mended = [str(entry.path) for entry in found if entry.fixed_upstream]
    say(f"{len(found)} reproducers, {len(complaints)} not as expected, {len(mended)} fixed upstream")
    write_json(json_file, {"reproducers": len(found), "complaints": complaints, "fixed_upstream": mended})
    raise typer.Exit(1 if complaints else 0)


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
) -> None:
    """Keep a finding's reproducer, where it belongs by what the arms show now.

    What no arm shows is fixed, what all of them show is upstream's; what one shows alone is to be mended first.
    """
    _require_own(corpus)
    given = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest)
    reported = reported_finding(named, given, lambda line: None)
    with _opened(given) as there:
        place = place_for(reported.fingerprint, shown(there.executor, there.arms, reported.case))
    path = corpus / place / f"{reported.fingerprint}.sql"
    _write(path, with_replay_command(reported.script, path, given.command_line()))
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
) -> None:
    """Reduce again what shows on the arms, and delete reproducers beside which a smaller one shows the same.

    What was fixed shows, and so can be reduced, only on the arms that had it.
    """
    _require_own(corpus)
    with _opened(ArmOptions.given(base, series, repo, commits, arm, flavor, manifest)) as there:
        found = [_smaller(there, entry) for entry in entries(corpus, there.executor, there.arms)]
    for entry in needless(found):
        entry.path.unlink()
        say(f"{entry.path}: deleted, a smaller one shows the same")


def _smaller(there: _Arms, entry: Entry) -> Entry:
    """Reduce a reproducer, and overwrite it if that helps."""
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
        raise PgduelError(f"cannot write {path} ({error.strerror}); give --corpus a directory you may use") from error

"""`pgduel show`: a finding in a form for others."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fuzz.campaign.catalog import find_harness_finding, find_spec_finding
from fuzz.campaign.store import HarnessFinding
from fuzz.cli import options
from fuzz.cli.app import app, write_files
from fuzz.cli.reported_finding import Named, progress, reported_finding
from fuzz.engines.isolation import read_spec
from fuzz.errors import CaseError
from fuzz.output import write_exactly
from fuzz.report.forms.form import all_forms
from fuzz.report.terminal import display
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR

FormName = StrEnum("FormName", list(all_forms()))  # type: ignore[misc]  # its members are the forms

_SQL = FormName("sql")


@app.command()
def show(
    *,
    named: Named,
    form: Annotated[FormName, typer.Option("--as", help="Form of the output.")] = _SQL,
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of the files. Default: print a single file.",
            show_default=False,
        ),
    ] = None,
    oracle: options.OracleOption = None,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
) -> None:
    """Write a finding as a psql script, a test of pg_regress or pytest, or a mail.

    A finding of a campaign has its own arms. For a reproducer, give the arms of its campaign unless they are the
    default. Servers are started for expected output, plans and backtraces.
    """
    chosen = all_forms()[form]
    if into is None and not chosen.one_file:
        raise CaseError(f"{form} has several files; give their directory with --into")
    given = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    stored = form is _SQL and not Path(named).is_file()
    if stored and (found := find_spec_finding(named)):
        files: Mapping[str, str] = {found.spec.name: read_spec(found.spec).text}
    elif stored and (of_harness := find_harness_finding(named)):
        files = {f"{of_harness[0].finding.fingerprint}.txt": harness_report(*of_harness)}
    else:
        with display(progress, None) as shown:
            files = chosen.files(reported_finding(named, given, shown.progress, oracle))
    if into is None:
        write_exactly(*files.values())
    else:
        write_files(into, files)


def harness_report(found: HarnessFinding, replay: str) -> str:
    """Return a finding of a harness as text: the command that shows it, its input in hexadecimal, and the report."""
    finding = found.finding
    data = found.input.read_bytes() if found.input.exists() else b""
    head = (
        finding.summary,
        f"origin: {finding.origin}",
        f"input: {found.input}, {len(data)} bytes",
        f"replay: {replay}",
    )
    return "\n".join((*head, "", hexdump(data), "", finding.actual.rstrip(), ""))


def hexdump(data: bytes) -> str:
    """Return bytes in hexadecimal, 16 a line after the offset."""
    return "\n".join(f"{at:04x}  {data[at : at + 16].hex(' ')}" for at in range(0, len(data), 16))

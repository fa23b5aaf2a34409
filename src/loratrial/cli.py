"""The `loratrial` command: reads its arguments, calls one function, prints what it gives.

Results go to standard output, progress and messages to standard error. Exit codes: 0; 1 when a recount finds
differences; 2 for a user's mistake, told in one line; 130 when interrupted. Anything that needs torch is
imported inside its command, so that help and recounts start at once and run where there is no torch.
"""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from loratrial import __version__
from loratrial.errors import DataError, LoratrialError, ModelError, RunFolderError, TrialFileError

app = typer.Typer(
    name="loratrial",
    help="Controlled trials of reinforcement learning on LoRA adapters.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

RUNS = Path("runs")
"""Where runs go unless told otherwise, below the current folder."""

WIDTH_OF_FILES = 120
"""Columns of a table that is not printed on a terminal."""

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Put one value into the trial file. May be repeated."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and no progress.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")]
TrialArgument = Annotated[Path, typer.Argument(metavar="TRIAL", help="The trial file.")]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit; the one place where an error of the user becomes a line."""
    try:
        app(arguments)
    except LoratrialError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def run(
    trial: TrialArgument,
    overrides: SetOption = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="The run folder; by default runs/NAME-HASH.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Start anew, in a folder of its own, though the run is there.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done and what it takes; do nothing.")
    ] = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a trial and print its result.

    Trains the arms and evaluates them on matched samples. An unfinished run of the same trial is continued; a
    finished one is shown.

    \b
    Example:
      loratrial run trials/notes-smollm2.toml --set trial.seed=7
    """
    from loratrial.progress import progress_for
    from loratrial.spec import load

    spec = load(trial, overrides or ())
    if dry_run:
        from loratrial.trial.plan import plan

        _print_mapping(plan(spec), as_json)
        return
    from loratrial.trial.run import resume_trial, run_folder_for, run_trial

    folder = to or run_folder_for(spec, root=RUNS)
    if again:
        folder = _unused(folder)
    progress = progress_for(quiet or as_json)
    if _holds_run(folder, spec):
        if _result_file(folder).is_file():
            typer.echo(f"{folder} holds this run already; to run it anew: add --again", err=True)
            _print_result(_result_of(folder), folder, as_json)
            return
        progress.say(f"continuing the unfinished run in {folder}")
        with _resumable(folder):
            result = resume_trial(folder, progress)
    else:
        settings = [part for override in overrides or () for part in ("--set", override)]
        with _resumable(folder):
            result = run_trial(
                spec, folder, progress, shlex.join(["loratrial", "run", str(trial), *settings])
            )
    _print_result(result, folder, as_json)


@app.command()
def resume(folder: RunArgument, quiet: QuietOption = False, as_json: JsonOption = False) -> None:
    """Continue an unfinished run.

    What follows is what an uninterrupted run would have done.

    \b
    Example:
      loratrial resume runs/notes-smollm2-1a2b3c4d
    """
    from loratrial.progress import progress_for
    from loratrial.trial.run import resume_trial

    _require_run(folder)
    with _resumable(folder):
        result = resume_trial(folder, progress_for(quiet or as_json))
    _print_result(result, folder, as_json)


@app.command()
def recount(folder: RunArgument, as_json: JsonOption = False) -> None:
    """Derive every reported number again.

    Needs the run's records and no model. The exit code is 1 when a number differs.

    \b
    Example:
      loratrial recount runs/notes-smollm2-1a2b3c4d
    """
    from loratrial.evidence.recount import recount as recount_run

    _require_run(folder)
    report = recount_run(folder)
    if as_json:
        _print_json({"differences": report.differences, "checked": report.checked, "result": report.result})
    else:
        for difference in report.differences:
            typer.echo(f"differs: {difference}")
        checked = ", ".join(f"{count} {what}" for what, count in report.checked.items())
        typer.echo(f"recounted {checked}: {_count(len(report.differences), 'difference')}")
    if report.differences:
        raise typer.Exit(1)


@app.command()
def show(
    folder: RunArgument,
    every_figure: Annotated[
        bool, typer.Option("--all", help="Every figure of the task, not the headline ones alone.")
    ] = False,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="Draw the tables into an SVG file, and print nothing."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the result of a finished run again.

    \b
    Example:
      loratrial show runs/notes-smollm2-1a2b3c4d --all
      loratrial show runs/notes-smollm2-1a2b3c4d --svg result.svg
    """
    _require_run(folder)
    result = _result_of(folder)
    if svg:
        _draw(result, svg, every_figure)
    else:
        _print_result(result, folder, as_json, every_figure)


@app.command()
def data(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="The task, such as notes.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The folder to write, new or empty.")],
    overrides: SetOption = None,
    trial: Annotated[
        Path | None,
        typer.Option("--trial", metavar="FILE", help="Take the task's options and the seed from it."),
    ] = None,
) -> None:
    """Write the dataset of a task as files.

    \b
    Example:
      loratrial data notes --to notes-data --set trial.seed=7
    """
    from loratrial.spec import load, parse
    from loratrial.tasks.registry import dataset_writer, find_task

    if trial is not None:
        spec = load(trial, overrides or ())
    else:
        spec = parse(_DATA_TRIAL.format(kind=json.dumps(kind)), f"data {kind}", overrides or ())
    if spec.task.kind != kind:
        raise TrialFileError(
            f"{trial}: its task is {spec.task.kind!r}, not {kind!r}; name the one or the other"
        )
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise DataError(f"{to} is there already and not empty; name a new folder")
    task = find_task(kind).create(spec.task.options, None, spec.trial.seed)
    to.mkdir(parents=True, exist_ok=True)
    dataset_writer(kind)(task, to)
    streams = task.dataset.streams
    items = sum(len(stream.items) for stream in streams)
    typer.echo(f"wrote {_count(len(streams), 'stream')} with {_count(items, 'item')} to {to}")


_DATA_TRIAL = """
[trial]
name = "data"
control = "base"
[model]
base = "tiny"
[task]
kind = {kind}
[arms.base]
method = "none"
"""


@app.command()
def doctor(
    as_json: JsonOption = False,
    fetch: Annotated[
        str | None,
        typer.Option("--fetch", metavar="ALIAS", help="Fetch a bundled model; check it, repair it."),
    ] = None,
) -> None:
    """Say what this machine offers a trial.

    Versions, cores, memory, disk, GPUs, models at hand, and what is likely to be in the way.

    \b
    Example:
      loratrial doctor --fetch smollm2-135m
    """
    from loratrial import doctor as doctor_module
    from loratrial.policy import bundled
    from loratrial.progress import progress_for

    if fetch is not None:
        if fetch != bundled.BUNDLED_NAME:
            raise ModelError(f"no model {fetch!r} can be fetched so; only {bundled.BUNDLED_NAME}")
        say = progress_for(as_json).say
        say(f"{fetch} is whole in {bundled.fetch(say, repair=True)}")
    report = doctor_module.examine()
    if as_json:
        _print_json(report)
    else:
        typer.echo(doctor_module.render(report))


@contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """Turn an interruption into the way to continue, once the run folder is there."""
    try:
        yield
    except KeyboardInterrupt:
        hint = f"; continue with: loratrial resume {shlex.quote(str(folder))}"
        typer.echo(f"stopped{hint if _is_run(folder) else ''}", err=True)
        raise typer.Exit(130) from None


def _is_run(folder: Path) -> bool:
    from loratrial.evidence.folder import RunFolder

    return RunFolder(folder).run_file.is_file()


def _require_run(folder: Path) -> None:
    if not _is_run(folder):
        what = "is no run folder" if folder.exists() else "does not exist"
        raise RunFolderError(f"{folder} {what}; name the folder that loratrial run printed")


def _result_file(folder: Path) -> Path:
    from loratrial.evidence.folder import RunFolder

    return RunFolder(folder).result_file


def _holds_run(folder: Path, spec: Any) -> bool:
    """Whether `folder` holds a run of this very trial; raises RunFolderError when it holds anything else."""
    from loratrial.evidence.folder import RunFolder
    from loratrial.spec import load, spec_hash

    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not _is_run(folder):
        raise RunFolderError(f"{folder} is there already and is no run; name another with --to")
    if spec_hash(load(RunFolder(folder).trial_file)) != spec_hash(spec):
        raise RunFolderError(f"{folder} holds a run of another trial; name another folder with --to")
    return True


def _unused(folder: Path) -> Path:
    """`folder`, or the first of folder-2, folder-3, ... that is not there."""
    number, unused = 1, folder
    while unused.exists():
        number += 1
        unused = folder.with_name(f"{folder.name}-{number}")
    return unused


def _result_of(folder: Path) -> dict[str, Any]:
    from loratrial.evidence.folder import read_object

    if not _result_file(folder).is_file():
        raise RunFolderError(f"{folder} has no result yet; continue it with: loratrial resume {folder}")
    return read_object(_result_file(folder))


def _draw(result: dict[str, Any], path: Path, every_figure: bool) -> None:
    from loratrial.evidence.table import picture

    try:
        path.write_text(picture(result, every_figure=every_figure), encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written ({error.strerror}); name another file") from None


def _print_result(result: dict[str, Any], folder: Path, as_json: bool, every_figure: bool = False) -> None:
    if as_json:
        _print_json(result)
        return
    from rich.console import Console

    from loratrial.evidence.table import render

    # in a file or a pipe there is no width to ask for, and tables should not fold at 80
    console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_FILES)
    console.print(render(result, every_figure=every_figure))
    typer.echo(f"run folder: {folder}")


def _print_mapping(mapping: dict[str, Any], as_json: bool) -> None:
    if as_json:
        _print_json(mapping)
        return
    import tomli_w

    typer.echo(tomli_w.dumps(_without_none(mapping)), nl=False)


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if isinstance(value, list | tuple) else value


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"

"""The command line: what it calls, what it prints where, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from loratrial import __version__
from loratrial.cli import main
from loratrial.errors import RunFolderError, ScorerError
from loratrial.evidence.folder import RunFolder
from loratrial.policy import bundled
from loratrial.spec import TrialSpec, load, resolved_toml

TRIAL = """
[trial]
name = "small"
control = "base"
[model]
base = "tiny"
[task]
kind = "fake_task:FakeTask"
[arms.base]
method = "none"
"""

RESULT = {"arms": {"base": 0.5}}


class Library:
    """Stands in for the modules that the commands call, and remembers what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.raises: BaseException | None = None
        self.differences: list[str] = []
        self.put(monkeypatch, "trial.run", self.run_trial, self.resume_trial, self.run_folder_for)
        self.put(monkeypatch, "trial.plan", self.plan)
        self.put(monkeypatch, "evidence.recount", self.recount)
        self.put(monkeypatch, "evidence.table", self.render, self.picture)

    @staticmethod
    def put(monkeypatch: pytest.MonkeyPatch, name: str, *functions: Any) -> None:
        module = ModuleType(f"loratrial.{name}")
        for function in functions:
            setattr(module, function.__name__, function)
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def run_trial(self, spec: TrialSpec, folder: Path, progress: Any, origin: str) -> dict[str, Any]:
        self.calls.append(("run", spec.trial.seed, str(folder), type(progress).__name__, origin))
        write_run(folder, spec)
        if self.raises:
            raise self.raises
        return RESULT

    def resume_trial(self, folder: Path, progress: Any) -> dict[str, Any]:
        self.calls.append(("resume", str(folder)))
        if self.raises:
            raise self.raises
        return RESULT

    def run_folder_for(self, spec: TrialSpec, root: Path = Path("runs")) -> Path:
        return root / f"{spec.trial.name}-{spec.trial.seed}"

    def plan(self, spec: TrialSpec) -> dict[str, Any]:
        return {"arms": ["base"], "cost": {"tokens": 12, "unknown": None}}

    def recount(self, folder: Path) -> SimpleNamespace:
        return SimpleNamespace(
            differences=self.differences, checked={"candidates": 8, "groups": 2}, result=RESULT
        )

    def render(self, result: dict[str, Any], *, every_figure: bool = False) -> str:
        return f"{'long' if every_figure else 'short'} table of {sorted(result)}"

    def picture(self, result: dict[str, Any], *, every_figure: bool = False) -> str:
        return "<svg/>"


def write_run(folder: Path, spec: TrialSpec, result: dict[str, Any] | None = None) -> None:
    run = RunFolder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    run.trial_file.write_text(resolved_toml(spec))
    run.run_file.write_text('{"format": 1}')
    if result is not None:
        run.result_file.write_text(json.dumps(result))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Library:
    monkeypatch.chdir(tmp_path)
    Path("trial.toml").write_text(TRIAL)
    return Library(monkeypatch)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


def test_run_prints_the_table_and_names_the_run_folder(library: Library, command: Any) -> None:
    code, out, _ = command("run", "trial.toml", "--set", "trial.seed=7")
    assert (code, out) == (0, "short table of ['arms']\nrun folder: runs/small-7\n")
    origin = "loratrial run trial.toml --set trial.seed=7"
    assert library.calls == [("run", 7, "runs/small-7", "LineProgress", origin)]


def test_run_as_json_prints_the_result_and_nothing_else(library: Library, command: Any) -> None:
    code, out, err = command("run", "trial.toml", "--to", "elsewhere", "--json")
    assert (code, json.loads(out), err) == (0, RESULT, "")
    assert library.calls[0][2:4] == ("elsewhere", "SilentProgress")


def test_a_quiet_run_shows_no_progress(library: Library, command: Any) -> None:
    assert command("run", "trial.toml", "--quiet")[2] == ""
    assert library.calls[0][3] == "SilentProgress"


def test_a_dry_run_prints_the_plan_and_runs_nothing(library: Library, command: Any) -> None:
    code, out, _ = command("run", "trial.toml", "--dry-run")
    assert (code, library.calls) == (0, [])
    assert out == 'arms = [\n    "base",\n]\n\n[cost]\ntokens = 12\n'
    assert json.loads(command("run", "trial.toml", "--dry-run", "--json")[1])["cost"]["unknown"] is None


def test_a_finished_run_is_shown_and_not_run_again(library: Library, command: Any) -> None:
    write_run(Path("runs/small-2718"), load("trial.toml"), RESULT)
    code, out, err = command("run", "trial.toml")
    assert (code, out) == (0, "short table of ['arms']\nrun folder: runs/small-2718\n")
    assert err == "runs/small-2718 holds this run already; to run it anew: add --again\n"
    assert library.calls == []


def test_again_runs_in_the_first_free_folder_beside_it(library: Library, command: Any) -> None:
    for folder in ("runs/small-2718", "runs/small-2718-2"):
        write_run(Path(folder), load("trial.toml"), RESULT)
    assert command("run", "trial.toml", "--again")[0] == 0
    assert library.calls[0][:3] == ("run", 2718, "runs/small-2718-3")


def test_an_unfinished_run_of_the_same_trial_is_continued(library: Library, command: Any) -> None:
    write_run(Path("runs/small-2718"), load("trial.toml"))
    code, _, err = command("run", "trial.toml")
    assert (code, library.calls) == (0, [("resume", "runs/small-2718")])
    assert err == "continuing the unfinished run in runs/small-2718\n"


def test_a_folder_of_another_trial_is_refused(library: Library, command: Any) -> None:
    write_run(Path("mine"), load("trial.toml", ["trial.seed=1"]))
    code, _, err = command("run", "trial.toml", "--to", "mine")
    assert (code, library.calls) == (2, [])
    assert err == "error: mine holds a run of another trial; name another folder with --to\n"


def test_a_folder_that_is_no_run_is_refused_and_an_empty_one_is_not(library: Library, command: Any) -> None:
    Path("mine").mkdir()
    assert command("run", "trial.toml", "--to", "mine")[0] == 0
    Path("full").mkdir()
    Path("full/letter.txt").write_text("dear")
    assert "full is there already and is no run" in command("run", "trial.toml", "--to", "full")[2]
    assert "is there already and is no run" in command("run", "trial.toml", "--to", "full/letter.txt")[2]


def test_an_interrupted_run_says_how_to_continue(library: Library, command: Any) -> None:
    library.raises = KeyboardInterrupt()
    code, _, err = command("run", "trial.toml", "--to", "a run")
    assert (code, err) == (130, "stopped; continue with: loratrial resume 'a run'\n")
    assert command("resume", "a run")[::2] == (130, "stopped; continue with: loratrial resume 'a run'\n")


def test_a_run_interrupted_before_its_folder_is_there_promises_nothing(
    library: Library, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.raises = KeyboardInterrupt()
    monkeypatch.setattr(f"{__name__}.write_run", lambda *_: None)
    assert command("run", "trial.toml")[::2] == (130, "stopped\n")


def test_an_interruption_anywhere_else_ends_with_130(library: Library, command: Any) -> None:
    def interrupted(spec: TrialSpec) -> dict[str, Any]:
        raise KeyboardInterrupt

    sys.modules["loratrial.trial.plan"].plan = interrupted  # type: ignore[attr-defined]
    assert command("run", "trial.toml", "--dry-run")[0] == 130


def test_an_error_of_the_user_is_one_line_with_code_2(library: Library, command: Any) -> None:
    library.raises = ScorerError("the scorer failed\non item 3")
    assert command("run", "trial.toml", "--quiet") == (2, "", "error: the scorer failed on item 3\n")
    code, _, err = command("run", "trial.toml", "--set", "trial.sed=1")
    assert code == 2
    assert err == "error: trial.toml with --set: trial: unknown key 'sed'; did you mean 'seed'?\n"


def test_a_fault_of_the_program_keeps_its_traceback(library: Library) -> None:
    library.raises = ZeroDivisionError("a fault")
    with pytest.raises(ZeroDivisionError):
        main(["run", "trial.toml", "--quiet"])


def test_resume_continues_a_run_and_prints_its_result(library: Library, command: Any) -> None:
    write_run(Path("mine"), load("trial.toml"))
    assert command("resume", "mine")[:2] == (0, "short table of ['arms']\nrun folder: mine\n")
    assert json.loads(command("resume", "mine", "--json")[1]) == RESULT
    assert library.calls == [("resume", "mine")] * 2


@pytest.mark.parametrize("name", ["resume", "recount", "show"])
def test_commands_on_a_run_refuse_what_is_none(library: Library, command: Any, name: str) -> None:
    Path("empty").mkdir()
    assert command(name, "empty")[::2] == (
        2,
        "error: empty is no run folder; name the folder that loratrial run printed\n",
    )
    assert command(name, "nowhere")[::2] == (
        2,
        "error: nowhere does not exist; name the folder that loratrial run printed\n",
    )


def test_a_recount_without_differences_says_what_was_checked(library: Library, command: Any) -> None:
    write_run(Path("mine"), load("trial.toml"))
    assert command("recount", "mine") == (0, "recounted 8 candidates, 2 groups: 0 differences\n", "")


def test_a_recount_with_differences_names_them_and_ends_with_1(library: Library, command: Any) -> None:
    write_run(Path("mine"), load("trial.toml"))
    library.differences = ["result.json: recall is 0.5, recounted 0.4"]
    code, out, _ = command("recount", "mine")
    assert code == 1
    assert out.splitlines()[0] == "differs: result.json: recall is 0.5, recounted 0.4"
    assert out.splitlines()[1].endswith(": 1 difference")
    code, out, _ = command("recount", "mine", "--json")
    assert (code, json.loads(out)["differences"]) == (1, library.differences)


def test_show_prints_the_result_of_a_finished_run(library: Library, command: Any) -> None:
    write_run(Path("mine"), load("trial.toml"), RESULT)
    assert command("show", "mine") == (0, "short table of ['arms']\nrun folder: mine\n", "")
    assert command("show", "mine", "--all")[1].startswith("long table of")
    assert json.loads(command("show", "mine", "--json")[1]) == RESULT


def test_show_of_an_unfinished_run_says_how_to_continue_it(library: Library, command: Any) -> None:
    write_run(Path("mine"), load("trial.toml"))
    assert command("show", "mine")[::2] == (
        2,
        "error: mine has no result yet; continue it with: loratrial resume mine\n",
    )


def test_data_writes_the_dataset_of_a_task(library: Library, command: Any) -> None:
    code, out, _ = command("data", "fake_task:FakeTask", "--to", "d", "--set", "task.users=3")
    assert (code, out) == (0, "wrote 3 streams with 3 items to d\n")
    assert len(Path("d/items.jsonl").read_text().splitlines()) == 3


def test_data_takes_options_and_seed_from_a_trial_file(library: Library, command: Any) -> None:
    command("data", "fake_task:FakeTask", "--to", "d", "--trial", "trial.toml", "--set", "trial.seed=5")
    assert "user-5-0" in Path("d/targets.jsonl").read_text()
    code, _, err = command("data", "notes", "--to", "e", "--trial", "trial.toml")
    assert (code, Path("e").exists()) == (2, False)
    assert err.startswith("error: trial.toml: its task is 'fake_task:FakeTask', not 'notes'")


def test_data_refuses_to_write_over_files(library: Library, command: Any) -> None:
    code, _, err = command("data", "fake_task:FakeTask", "--to", ".")
    assert (code, err) == (2, "error: . is there already and not empty; name a new folder\n")


def test_a_task_with_its_own_writer_writes_its_dataset_itself(
    library: Library, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fake_task as module

    def write_dataset(task: Any, folder: Path) -> None:
        (folder / "own").write_text("")

    monkeypatch.setattr(module, "write_dataset", write_dataset, raising=False)
    command("data", "fake_task:FakeTask", "--to", "d")
    assert [path.name for path in Path("d").iterdir()] == ["own"]


def test_doctor_reports_as_lines_and_as_json(
    command: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LORATRIAL_CACHE", str(tmp_path))
    code, out, _ = command("doctor")
    assert code == 0
    assert out.startswith(f"loratrial      {__version__}")
    assert json.loads(command("doctor", "--json")[1])["loratrial"] == __version__


def test_doctor_fetches_or_repairs_only_the_bundled_model(
    command: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LORATRIAL_CACHE", str(tmp_path))
    asked: list[bool] = []

    def fetch(say: Any, *, repair: bool) -> Path:
        asked.append(repair)
        say("downloading")
        return tmp_path / "model"

    monkeypatch.setattr(bundled, "fetch", fetch)
    err = command("doctor", "--fetch", "smollm2-135m")[2]
    assert err.splitlines() == ["downloading", f"smollm2-135m is whole in {tmp_path / 'model'}"]
    assert asked == [True]
    assert command("doctor", "--fetch", "gpt")[::2] == (
        2,
        "error: no model 'gpt' can be fetched so; only smollm2-135m\n",
    )


def test_the_version_is_printed(command: Any) -> None:
    assert command("--version") == (0, f"{__version__}\n", "")


def test_an_unknown_command_is_a_usage_error_with_a_suggestion(command: Any) -> None:
    code, _, err = command("recont")
    assert code == 2
    assert "recount" in err


@pytest.mark.parametrize("name", ["run", "resume", "recount", "show", "data", "doctor"])
def test_the_help_of_every_command_has_an_example(command: Any, name: str) -> None:
    code, out, _ = command(name, "--help")
    assert code == 0
    assert f"Example:\n    loratrial {name} " in out


@pytest.mark.parametrize("arguments", [["--help"], ["recount", "--help"], ["recount", "."]])
def test_help_and_recount_do_not_import_torch(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom loratrial.cli import main\n"
        "try:\n    import loratrial.evidence.recount\n    main(sys.argv[1:])\n"
        "except SystemExit as ended:\n"
        "    sys.exit(99 if {'torch', 'transformers'} & sys.modules.keys() else ended.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == (2 if arguments == ["recount", "."] else 0), done.stderr


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loratrial", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{__version__}\n"


@pytest.mark.parametrize(
    ("raised", "code", "line"),
    [(RunFolderError("here"), 2, "error: here\n"), (KeyboardInterrupt(), 130, "stopped\n")],
)
def test_what_happens_outside_any_command_ends_in_one_line_too(
    monkeypatch: pytest.MonkeyPatch, command: Any, raised: BaseException, code: int, line: str
) -> None:
    def fail(arguments: list[str]) -> None:
        raise raised

    monkeypatch.setattr("loratrial.cli.app", fail)
    assert command() == (code, "", line)


def test_show_draws_a_picture_or_says_why_not(library: Library, command: Any) -> None:
    write_run(Path("mine"), load("trial.toml"), RESULT)
    assert command("show", "mine", "--svg", "result.svg") == (0, "", "")
    assert Path("result.svg").read_text() == "<svg/>"
    code, _, err = command("show", "mine", "--svg", "nowhere/result.svg")
    assert (code, err.count("\n")) == (2, 1)

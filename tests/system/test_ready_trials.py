"""The ready trial of the smallest model through the command line, as a newcomer runs it."""

import json
from pathlib import Path

import pytest

from loratrial.cli import main

TRIALS = Path(__file__).parents[2] / "trials"


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


def test_the_tiny_trial_runs_is_shown_and_recounts_without_a_difference(command, tmp_path):
    code, out, err = command("run", TRIALS / "notes-tiny.toml", "--set", "model.threads=1", "--to", "run")
    assert code == 0
    assert "warn" not in err.lower()
    assert "run folder: run" in out
    code, out, _ = command("recount", "run", "--json")
    report = json.loads(out)
    assert (code, report["differences"]) == (0, [])
    assert report["checked"]["ledgers"] == 4
    code, shown, _ = command("show", "run", "--json")
    assert (code, json.loads(shown)) == (0, report["result"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]

"""A process that is killed outright leaves a run that another process finishes to the same bytes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from letters_task import TRIAL
from whole_runs import ledger, lines_of, repeatable, resume

from loratrial.evidence.folder import RunFolder
from loratrial.evidence.recount import recount

DRIVER = """
import os, signal, sys
from pathlib import Path
from loratrial.evidence.ledger import LedgerWriter
from loratrial.progress import SilentProgress
from loratrial.spec import parse
from loratrial.trial import training
from loratrial.trial.run import run_trial

training.SECONDS_BETWEEN_CHECKPOINTS = 0.0
append = LedgerWriter.append_group

def until_the_fourth_group_of_training(self, records):
    append(self, records)
    if records[0].walk == "train-0" and records[0].group == 3:
        os.kill(os.getpid(), signal.SIGKILL)

LedgerWriter.append_group = until_the_fourth_group_of_training
run_trial(parse(sys.argv[2], "letters"), Path(sys.argv[1]), SilentProgress(), "test")
"""


def test_a_killed_process_leaves_no_lock_and_a_run_that_ends_as_if_nothing_had_been(finished, tmp_path):
    folder = tmp_path / "run"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", DRIVER, str(folder), TRIAL]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert RunFolder(folder).read_run()["status"] == "running"
    assert len(ledger(folder, "arms/trained/ledger")) == 4
    assert len(lines_of(folder / "arms/trained/updates.jsonl")) == 1
    assert (folder / "arms/trained/checkpoint.safetensors").exists()
    with RunFolder(folder).lock():
        pass
    assert repeatable(resume(folder)) == repeatable(finished)
    assert recount(folder).differences == []

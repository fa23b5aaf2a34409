import subprocess
import sys

import pytest

from loratrial.errors import RunFolderError
from loratrial.evidence.folder import RunFolder, read_object, write_atomic


def test_a_second_writer_is_refused_until_the_first_is_done(tmp_path):
    folder = RunFolder(tmp_path)
    with (
        folder.lock(),
        pytest.raises(RunFolderError, match="being written by another process"),
        folder.lock(),
    ):
        pass
    with folder.lock():
        assert folder.lock_file.exists()


def test_a_dead_process_holds_no_lock(tmp_path):
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom loratrial.evidence.folder import RunFolder\n"
        "RunFolder(Path(sys.argv[1])).lock().__enter__()\nos._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False).returncode == 9
    with RunFolder(tmp_path).lock():
        assert (tmp_path / "lock").exists()


def test_the_lock_is_let_go_when_the_writer_fails(tmp_path):
    folder = RunFolder(tmp_path)
    with pytest.raises(ZeroDivisionError), folder.lock():
        raise ZeroDivisionError
    with folder.lock():
        assert folder.lock_file.exists()


def test_a_file_is_replaced_whole_and_nothing_stays_beside_it(tmp_path):
    path = tmp_path / "result.json"
    write_atomic(path, "old é")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "result.json"
    write_atomic(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomic(path, "\ud800")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


def test_run_json_comes_back_with_its_format(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_run(trial="t", status="running")
    assert folder.read_run() == {"format": 2, "trial": "t", "status": "running"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is no run folder"),
        ('{"format": 1}', "has format 1; this version reads format 2"),
        ('{"status": "complete"}', "has format None"),
        ("{", "is no JSON"),
        ("[]", "is no JSON object"),
    ],
)
def test_what_is_no_run_folder_of_this_format_is_refused_by_name(tmp_path, content, message):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunFolderError, match=message) as caught:
        RunFolder(tmp_path).read_run()
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(RunFolderError, match=r"arm\.json is missing"):
        read_object(tmp_path / "arm.json")

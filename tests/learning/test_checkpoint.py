"""The point to go on from: whole or not there, and refused in one line when it is damaged."""

import pytest
import torch
from safetensors.torch import save

from loratrial.errors import RunFolderError
from loratrial.evidence import folder
from loratrial.learning.checkpoint import Checkpoint, load_checkpoint, save_checkpoint

CHECKPOINT = Checkpoint(
    adapter={"layers.0.lora_A": torch.arange(6.0).view(2, 3), "layers.0.lora_B": torch.zeros(2)},
    optimizer={"step:x": torch.tensor(4.0), "exp_avg:x": torch.arange(6.0).view(2, 3).T},
    version=7,
    n_groups=5,
    n_lines=3,
)


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    path = tmp_path / "checkpoint"
    assert load_checkpoint(path) is None
    save_checkpoint(path, CHECKPOINT)
    found = load_checkpoint(path)
    assert (found.version, found.n_groups, found.n_lines) == (7, 5, 3)
    for ours, theirs in ((found.adapter, CHECKPOINT.adapter), (found.optimizer, CHECKPOINT.optimizer)):
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(value, theirs[name]) for name, value in ours.items())


def test_a_checkpoint_that_is_cut_off_anywhere_is_refused_in_one_line(tmp_path):
    path = tmp_path / "checkpoint"
    save_checkpoint(path, CHECKPOINT)
    whole = path.read_bytes()
    for n_bytes in range(0, len(whole), 37):
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(
            RunFolderError, match=r"is damaged \(.*\); delete it to train this arm anew"
        ) as error:
            load_checkpoint(path)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "counts", [None, {"version": "1"}, {"version": "x", "n_groups": "1", "n_lines": "1"}]
)
def test_a_file_without_its_counts_is_no_checkpoint(tmp_path, counts):
    path = tmp_path / "checkpoint"
    path.write_bytes(save({"adapter/a": torch.zeros(1)}, metadata=counts))
    with pytest.raises(RunFolderError, match="is damaged"):
        load_checkpoint(path)


def test_a_checkpoint_that_fails_to_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    save_checkpoint(path, CHECKPOINT)
    before = path.read_bytes()

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(folder.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(path, Checkpoint({}, {}, 8, 6, 4))
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["checkpoint"]

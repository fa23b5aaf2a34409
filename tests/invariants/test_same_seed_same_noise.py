"""What the seed decides, and what must make no difference to a whole trial."""

from dataclasses import replace

import pytest
from letters_task import TRIAL, LettersTask
from whole_runs import ledger, repeatable, run_letters

from loratrial.tasks.task import Dataset

SAMPLED = (".jsonl", ".safetensors")


@pytest.fixture(scope="module")
def other_seed(tmp_path_factory):
    return run_letters(tmp_path_factory.mktemp("other") / "run", "trial.seed=12")


def by_place(folder, name):
    groups = ledger(folder, name)
    return {(r.stream, r.item, r.candidate): r for group in groups for r in group}


def test_another_seed_makes_other_data_other_samples_and_other_adapters(finished, other_seed):
    ours, theirs = repeatable(other_seed), repeatable(finished)
    assert ours.keys() == theirs.keys()
    names = [name for name in theirs if name.endswith(SAMPLED)]
    assert len(names) == 2 + 2 + 3 + 3 + 4  # data, training ledgers, records, adapters, evaluations
    for name in names:
        assert ours[name] != theirs[name], name


@pytest.mark.parametrize(
    ("first", "second"),
    [("arms/trained/ledger", "arms/loo/ledger"), ("evaluation/base/eval-7", "evaluation/trained/eval-7")],
)
def test_arms_share_their_noise_item_by_item_and_no_two_candidates_do(finished, first, second):
    ours, theirs = by_place(finished, first), by_place(finished, second)
    shared = ours.keys() & theirs.keys()
    assert len(shared) >= 6
    assert all(ours[place].seed == theirs[place].seed for place in shared)
    assert any(ours[place].token_ids != theirs[place].token_ids for place in shared)
    assert len({record.seed for record in ours.values()}) == len(ours)


def test_an_arm_does_not_depend_on_the_other_arms_of_the_trial_or_on_their_order(finished, tmp_path):
    base = '[arms.base]\nmethod = "none"\n'
    head, tail = TRIAL.split(base)
    loo = tail[tail.index("[arms.loo]") : tail.index("[evaluation]")]
    evaluation = tail[tail.index("[evaluation]") :]
    folder = run_letters(tmp_path / "run", text=head + loo + base + evaluation)
    ours, theirs = repeatable(folder), repeatable(finished)
    names = [name for name in ours if ("/loo/" in name or "/base/" in name) and name.endswith(SAMPLED)]
    assert len(names) == 1 + 1 + 1 + 2
    for name in names:
        assert ours[name] == theirs[name], name


def test_other_labels_move_no_prompt_and_no_token_of_an_untrained_arm(finished, tmp_path, monkeypatch):
    create = LettersTask.create.__func__

    def relabelled(cls, options, dataset, seed):
        task = create(cls, options, dataset, seed)
        if dataset is not None:
            return task
        targets = {
            place: replace(target, private={"word": target.private["word"][::-1] + "xyz"})
            for place, target in task.dataset.targets.items()
        }
        return cls(options, Dataset(task.dataset.streams, targets))

    monkeypatch.setattr(LettersTask, "create", classmethod(relabelled))
    text = TRIAL.partition("[arms.warm]")[0] + TRIAL[TRIAL.index("[evaluation]") :]
    folder = run_letters(tmp_path / "run", text=text)
    ours, theirs = by_place(folder, "evaluation/base/eval-7"), by_place(finished, "evaluation/base/eval-7")
    assert (folder / "data/targets.jsonl").read_text() != (finished / "data/targets.jsonl").read_text()
    for place, record in ours.items():
        assert record.messages_sha256 == theirs[place].messages_sha256
        assert record.token_ids == theirs[place].token_ids
    assert any(record.score != theirs[place].score for place, record in ours.items())

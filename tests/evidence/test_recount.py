"""Each tampering of a run folder is found, and named with its file and line."""

import json
import re
import shutil
from hashlib import sha256

import pytest
from evidence_toy import TRIAL, Writer

from loratrial.errors import RunFolderError
from loratrial.evidence.folder import RunFolder
from loratrial.evidence.jsonio import canonical, pretty
from loratrial.evidence.recount import recount

LEDGER = "evaluation/trained/eval-7.jsonl"
TRAINING = "arms/trained/ledger.jsonl"
UPDATES = "arms/trained/updates.jsonl"


def edit(path, line: int, change) -> None:
    """Change the object on one line (from 1), written back in the ledger's own spelling."""
    lines = path.read_text().splitlines(keepends=True)
    value = json.loads(lines[line - 1])
    change(value)
    lines[line - 1] = canonical(value) + "\n"
    path.write_text("".join(lines))


def setting(**changes):
    return lambda value: value.update(changes)


def found(run) -> list[str]:
    return recount(run).differences


def test_an_untouched_run_recounts_without_a_difference(pristine):
    report = recount(pristine)
    assert report.differences == []
    assert report.checked["ledgers"] == 14
    assert report.checked["candidates"] == sum(
        len(path.read_bytes().splitlines())
        for path in pristine.glob("**/*.jsonl")
        if path.name != "updates.jsonl"
    ) - 2 * len((pristine / "data/items.jsonl").read_bytes().splitlines())
    assert report.result == json.loads((pristine / "result.json").read_bytes())


def test_the_same_trial_writes_the_same_bytes(pristine, tmp_path):
    Writer(tmp_path / "again").write()
    for path in pristine.rglob("*.json*"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(pristine)).read_bytes(), path


@pytest.mark.parametrize("ledger", [LEDGER, TRAINING])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (setting(text="violet"), "reading.facts is "),
        (lambda value: value["score"].update(reward=9), "score.reward is 9, recounted "),
        (lambda value: value["score"]["figures"].update(recall=0.125), "score.figures.recall is 0.125, "),
        (lambda value: value["score"]["figures"].pop("recall"), "score.figures.recall is null, "),
        (
            lambda value: value["score"]["detail"].update(missing=["mauve"]),
            'score.detail is {"missing":["mauve"]',
        ),
        (lambda value: value["reading"].update(state="red red"), 'reading.state is "red red"'),
        (lambda value: value["reading"].update(valid=not value["reading"]["valid"]), "reading.valid is "),
        (setting(seed=1), "seed is 1, recounted "),
        (setting(messages_sha256="0" * 64), "messages_sha256 is "),
        (setting(prompt_ids_sha256="0" * 64), "prompt_ids_sha256 is "),
        (setting(n_prompt_tokens=0), "n_prompt_tokens is 0"),
        (setting(carried=True), "carried is true, recounted false"),
        (setting(policy_version=77), "policy_version is 77"),
        (lambda value: value["logprobs"].append(-1.0), "log-probabilities for "),
        (setting(token_ids=[1] * 97, logprobs=[-1.0] * 97), "97 tokens of free text, the trial allows 96"),
        (setting(finish="refused"), "a refused prompt has an answer"),
    ],
)
def test_a_changed_line_is_named(run, ledger, change, message):
    edit(run / ledger, 5, change)
    differences = found(run)
    assert differences[0].startswith(f"{ledger}:5: ")
    assert any(message in each for each in differences), differences


def test_a_flipped_reward_shows_in_the_ledger_and_not_in_the_recounted_result(run):
    edit(run / LEDGER, 5, lambda value: value["score"].update(reward=9))
    report = recount(run)
    assert len(report.differences) == 1
    assert report.result == json.loads((run / "result.json").read_bytes())


def test_a_carried_note_is_followed_from_candidate_zero_and_not_from_what_a_line_claims(run):
    lines = (run / LEDGER).read_text().splitlines()
    number = next(
        number
        for number, line in enumerate(lines, start=1)
        if (value := json.loads(line))["carried"] and value["reading"]["valid"] and value["item"] == 0
    )
    stream = json.loads(lines[number - 1])["stream"]
    edit(run / LEDGER, number, setting(text="violet"))
    later = next(
        later
        for later, line in enumerate(lines, start=1)
        if (value := json.loads(line))["stream"] == stream and value["item"] == 1
    )
    differences = found(run)
    assert any(each.startswith(f"{LEDGER}:{number}: reading.facts") for each in differences)
    assert any(each.startswith(f"{LEDGER}:{later}: messages_sha256") for each in differences)


def dropped(lines):
    del lines[4]


def doubled(lines):
    lines.insert(4, lines[4])


def swapped(lines):
    lines[3], lines[4] = lines[4], lines[3]


def torn(lines):
    lines[-1] = lines[-1][:-9]


def shortened(lines):
    del lines[-3:]


def lengthened(lines):
    for line in lines[-3:]:
        value = json.loads(line)
        value["group"] += 1
        lines.append(canonical(value) + "\n")


def renumbered(lines):
    """Drops the second group and closes the gap, as a careful hand would."""
    del lines[3:6]
    for place, line in enumerate(lines):
        value = json.loads(line)
        value["group"] = place // 3
        lines[place] = canonical(value) + "\n"


def reordered(lines):
    """Swaps two groups together with their ordinals."""
    first, second = lines[0:3], lines[3:6]
    for at, (one, other) in enumerate(zip(first, second, strict=True)):
        lines[at] = other.replace('"group":1', '"group":0')
        lines[3 + at] = one.replace('"group":0', '"group":1')


@pytest.mark.parametrize("ledger", [LEDGER, TRAINING])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dropped, r":5: candidate 2 of 3 where candidate 1 belongs"),
        (doubled, r":6: candidate 1 of 3 where candidate 2 belongs"),
        (swapped, r":4: candidate 1 of 3 where candidate 0 belongs"),
        (torn, r":\d+: the last group is torn or incomplete"),
        (shortened, r":\d+: the ledger ends before (eval-7|train-1) of stream '\w+' item \d; the rest"),
        (lengthened, r":\d+: a group after the end of the walk"),
        (renumbered, r":4: (stream|item) '?\w+'? where '?\w+'? belongs"),
        (reordered, r":1: (stream|item) '?\w+'? where '?\w+'? belongs"),
    ],
)
def test_lines_that_are_not_the_walk_are_named_and_nothing_is_derived_from_them(run, ledger, change, message):
    path = run / ledger
    lines = path.read_text().splitlines(keepends=True)
    change(lines)
    path.write_text("".join(lines))
    report = recount(run)
    assert any(re.match(re.escape(ledger) + message, each) for each in report.differences), report.differences
    assert "result.json: was not recounted, because a ledger is not whole" in report.differences
    assert report.result == {}


def test_a_missing_ledger_is_named(run):
    (run / LEDGER).unlink()
    assert found(run)[0].startswith(f"{LEDGER}: is missing")


def test_a_ledger_that_the_trial_does_not_know_is_named(run):
    shutil.copy(run / LEDGER, run / "evaluation/trained/eval-99.jsonl")
    assert found(run) == ["evaluation/trained/eval-99.jsonl: the trial knows no such ledger"]


def test_swapped_arms_are_named(run):
    other = run / "evaluation/base/eval-7.jsonl"
    (run / LEDGER).rename(run / "aside")
    other.rename(run / LEDGER)
    (run / "aside").rename(other)
    assert (
        f"{LEDGER}:1: arm 'base' where 'trained' belongs; the rest of this file was not recounted"
        in found(run)
    )


def test_swapped_arms_are_seen_by_their_policy_even_when_their_names_are_rewritten(run):
    other = run / "evaluation/base/eval-7.jsonl"
    ours, theirs = (run / LEDGER).read_text(), other.read_text()
    other.write_text(ours.replace('"arm":"trained"', '"arm":"base"'))
    (run / LEDGER).write_text(theirs.replace('"arm":"base"', '"arm":"trained"'))
    differences = found(run)
    made = sum(json.loads(line)["update"] is not None for line in (run / UPDATES).read_text().splitlines())
    assert f"{LEDGER}:1: policy_version 0, the arm's is {made}" in differences
    assert f"evaluation/base/eval-7.jsonl:1: policy_version {made}, the arm's is 0" in differences


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"trial": "toy"', '"trial": "other"', 'trial is "other", recounted "toy"'),
        ('"n_items": 12', '"n_items": 13', "sections.eval.n_items is 13, recounted 12"),
        ('"control": "base",\n  "split"', '"split"', 'control is absent, recounted "base"'),
        ('"control": "base",', '"control": "base", "extra": [],', "extra is [], recounted absent"),
    ],
)
def test_a_changed_result_is_named_figure_by_figure(run, old, new, message):
    path = run / "result.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert found(run) == [f"result.json: {message}"]


def test_a_figure_that_moved_by_a_millionth_is_a_difference(run):
    result = json.loads((run / "result.json").read_bytes())
    result["sections"]["eval"]["differences"]["trained"]["pooled"]["recall"]["interval"][0] += 1e-6
    (run / "result.json").write_text(pretty(result))
    assert len(found(run)) == 1
    assert found(run)[0].startswith(
        "result.json: sections.eval.differences.trained.pooled.recall.interval[0] is "
    )


def test_a_missing_or_broken_result_is_named(run):
    (run / "result.json").write_text("{")
    assert found(run)[0].startswith("result.json is no JSON") or found(run)[0].startswith("result.json: ")
    (run / "result.json").unlink()
    assert "missing" in found(run)[0]


def groups_of(change):
    def changed(value):
        change(value["groups"])

    return changed


def first_that_learns(run) -> int:
    lines = (run / UPDATES).read_text().splitlines()
    return next(n for n, line in enumerate(lines, start=1) if json.loads(line)["update"] is not None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (groups_of(lambda groups: groups[0].update(rewards=[9, 9, 9])), "rewards [9, 9, 9], recounted "),
        (groups_of(lambda groups: groups[0].update(tied=None)), "tied None, recounted "),
        (
            groups_of(lambda groups: groups[0].update(advantages=[0.5, 0.0, 0.0])),
            "advantages [0.5, 0.0, 0.0], ",
        ),
        (groups_of(lambda groups: groups[0].update(advantages=["x"] * 3)), "advantages ['x', 'x', 'x'], "),
        (groups_of(lambda groups: groups[0].update(advantages=None)), "advantages None, "),
        (groups_of(lambda groups: groups.pop()), "where group"),
        (setting(groups=[]), "groups [] where group"),
        (setting(groups=[3]), "groups [] where group"),
        (setting(update=None), "update is None, but a group teaches"),
        (setting(update="x"), "update is 'x', "),
    ],
)
def test_a_changed_learning_record_is_named(run, change, message):
    line = first_that_learns(run)
    edit(run / UPDATES, line, change)
    differences = found(run)
    # a line that names too few groups shows where the next one does not follow
    assert any(
        re.match(rf"{UPDATES}:({line}|{line + 1}): ", each) and message in each for each in differences
    )


def test_an_update_where_nothing_teaches_is_named(run):
    lines = (run / UPDATES).read_text().splitlines()
    number = next(n for n, line in enumerate(lines, start=1) if json.loads(line)["update"] is None)
    edit(run / UPDATES, number, setting(update=99))
    assert any(
        each.startswith(f"{UPDATES}:{number}: update is 99, but no group teaches") for each in found(run)
    )


def test_a_learning_record_that_ends_early_or_is_damaged_or_missing_is_named(run):
    path = run / UPDATES
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    assert any(each.startswith(f"{UPDATES}: ends before group ") for each in found(run))
    path.write_text("".join(["[]\n", *lines[1:]]))
    assert f"{UPDATES}:1: not a JSON object" in found(run)
    path.write_text("".join(["{\n", *lines[1:]]))
    assert any(each.startswith(f"{UPDATES}:1: not a line of JSON") for each in found(run))
    path.unlink()
    assert any(each.startswith(f"{UPDATES}: is missing") for each in found(run))


def test_a_policy_that_is_not_as_old_as_its_updates_is_named(run):
    path = run / TRAINING
    lines = path.read_text().splitlines(keepends=True)
    lines[-3:] = [re.sub(r'"policy_version":\d+', '"policy_version":1', line) for line in lines[-3:]]
    path.write_text("".join(lines))
    assert any(
        each.startswith(f"{TRAINING}:{len(lines) - 2}: policy_version 1 after ") for each in found(run)
    )


def test_several_updates_on_the_same_groups_are_one_line_each(tmp_path):
    """Lines that repeat their groups count as further updates of the same policy step."""
    text = TRIAL.replace("passes = 2", "passes = 2\nupdates_per_group = 2")

    class Twice(Writer):
        def train(self, arm):
            version = super().train(arm)
            if arm != "trained":
                return version
            path = self.folder.updates(arm)
            lines, number, scale = [], 0, 2
            for line in path.read_text().splitlines():
                value = json.loads(line)
                for _ in range(1 if value["update"] is None else scale):
                    again = dict(value)
                    if value["update"] is not None:
                        again["update"], number = number, number + 1
                    lines.append(canonical(again) + "\n")
            path.write_text("".join(lines))
            ledger = self.folder.training_ledger(arm)
            ledger.write_text(
                re.sub(
                    r'"policy_version":(\d+)',
                    lambda match: f'"policy_version":{scale * int(match[1])}',
                    ledger.read_text(),
                )
            )
            return scale * version

    Twice(tmp_path / "run", text).write()
    assert found(tmp_path / "run") == []


def test_a_training_that_stopped_before_its_groups_is_named(run):
    path = run / "arms/loo/ledger.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-8]))
    assert "arms/loo/ledger.jsonl: 2 groups, the trial says max_groups = 3 of 5" in found(run)


def test_another_adapter_is_named(run):
    weights = run / "arms/trained/adapter/adapter_model.safetensors"
    weights.write_bytes(b"other")
    assert found(run) == [
        "arms/trained/adapter/adapter_model.safetensors: "
        f"SHA-256 {sha256(b'other').hexdigest()}, arm.json says {sha256(b'trained').hexdigest()}"
    ]
    weights.unlink()
    assert "SHA-256 missing" in found(run)[0]


def test_an_arm_that_says_another_method_or_nothing_is_named(run):
    edited = json.loads((run / "arms/trained/arm.json").read_text())
    (run / "arms/trained/arm.json").write_text(pretty({**edited, "method": "supervised"}))
    assert found(run) == ["arms/trained/arm.json: method is 'supervised', the trial says 'grpo'"]
    (run / "arms/trained/arm.json").unlink()
    assert found(run)[0].startswith("arms/trained/arm.json: arms/trained/arm.json is missing")
    (run / "arms/base/arm.json").unlink()
    assert len(found(run)) == 1


def test_another_trial_or_other_labels_are_named(run):
    trial = run / "trial.toml"
    trial.write_text(trial.read_text().replace("seed = 5", "seed = 6"))
    assert found(run)[0].startswith("run.json: spec_sha256 is ")
    trial.write_text(trial.read_text().replace("seed = 6", "seed = 5"))
    targets = run / "data/targets.jsonl"
    targets.write_text(re.sub(r'"words":\["\w+"', '"words":["mauve"', targets.read_text(), count=1))
    differences = found(run)
    assert differences[0].startswith("run.json: data_sha256 is ")
    assert any("score.reward" in each or "score.detail" in each for each in differences)


def test_a_scorer_that_fails_is_a_named_difference_and_not_a_score(run, monkeypatch):
    from evidence_toy import ToyTask

    def broken(self, item, text, state):
        raise KeyError("colour")

    monkeypatch.setattr(ToyTask, "read", broken)
    assert "failed on an answer to stream 's0' item 0: KeyError: 'colour'" in found(run)[0]


def test_many_differences_of_one_file_are_counted(run):
    path = run / LEDGER
    path.write_text(path.read_text().replace('"reward":', '"reward":7'))
    differences = [each for each in found(run) if each.startswith(LEDGER)]
    assert len(differences) == 21
    assert differences[-1] == f"{LEDGER}: and {len(path.read_text().splitlines()) - 20} more differences"


def test_what_a_model_wrote_cannot_move_the_terminal_that_shows_a_difference(run):
    edit(run / LEDGER, 5, lambda value: value["reading"].update(problem="\x9b2J\u202e\ud800"))
    (difference,) = found(run)
    assert difference.startswith(f'{LEDGER}:5: reading.problem is "')
    assert difference.isprintable()
    assert "\\x9b2J\\u202e" in difference


def test_a_run_that_is_not_complete_is_refused(run):
    RunFolder(run).write_run(status="running")
    with pytest.raises(RunFolderError, match="run is not complete; loratrial resume"):
        recount(run)

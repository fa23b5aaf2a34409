"""The trial file: what is accepted, what is refused and how, and that writing it back loses nothing."""

from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from loratrial.errors import TrialFileError
from loratrial.spec import (
    GrpoArm,
    ModelSpec,
    ReinforceArm,
    TrialSpec,
    arm_order,
    canonical_json,
    load,
    parse,
    resolved_toml,
    spec_hash,
)
from loratrial.tasks.registry import find_task, known_kinds

TRIAL = """
[trial]
name = "small"
control = "warm"

[model]
base = "tiny"

[task]
kind = "fake_task:FakeTask"
users = 3
layouts = ["one", "two"]

[arms.grpo]
from = "warm"
method = "grpo"

[arms.base]
method = "none"

[arms.warm]
from = "base"
method = "supervised"
"""

TRIALS = Path(__file__).parents[1] / "trials"


def refused(text: str, *overrides: str) -> str:
    """The one line with which a trial file is refused."""
    with pytest.raises(TrialFileError) as refusal:
        parse(text, "trials/x.toml", overrides)
    line = str(refusal.value)
    assert "\n" not in line
    return line


def with_set(*overrides: str) -> str:
    """The refusal of the good trial after overrides, without the file's name."""
    return refused(TRIAL, *overrides).removeprefix("trials/x.toml with --set: ")


def test_what_is_not_said_has_its_default() -> None:
    spec = parse(TRIAL)
    grpo = spec.arms["grpo"]
    assert isinstance(grpo, GrpoArm)
    assert (spec.trial.seed, spec.adapter.rank, spec.adapter.alpha, spec.sampling.candidates) == (
        2718,
        16,
        32,
        4,
    )
    assert (grpo.learning_rate, grpo.clip_ratio, grpo.kl_penalty, grpo.gradient_clip) == (
        1e-5,
        0.2,
        0.02,
        1.0,
    )
    assert len(spec.adapter.targets) == 7


def test_the_methods_have_the_advantages_of_their_papers() -> None:
    reinforce = parse(TRIAL, overrides=["arms.r={from='warm', method='reinforce'}"]).arms["r"]
    assert isinstance(reinforce, ReinforceArm)
    assert reinforce.advantage == "leave_one_out"
    assert parse(TRIAL).arms["grpo"].advantage == "group_std"


def test_the_options_of_the_task_stand_flat_beside_its_kind() -> None:
    options = parse(TRIAL).task.options
    assert options.model_dump() == {"users": 3, "share": 0.5, "layouts": ("one", "two"), "note": None}


def test_a_whole_number_may_stand_for_a_number_with_a_point() -> None:
    assert parse(TRIAL, overrides=["sampling.temperature=2"]).sampling.temperature == 2.0


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        parse(TRIAL).trial.seed = 3


def test_a_spec_built_in_python_is_checked_like_a_file() -> None:
    spec = parse(TRIAL)
    parts = {name: getattr(spec, name) for name in TrialSpec.model_fields}
    assert TrialSpec(**parts) == spec
    with pytest.raises(ValidationError, match="unknown arm"):
        TrialSpec(**{**parts, "trial": spec.trial.model_copy(update={"control": "x"})})


BAD = {
    "arms.grpo.learing_rate=1": "arms.grpo: unknown key 'learing_rate'; did you mean 'learning_rate'?",
    "arms.base.passes=1": "arms.base: unknown key 'passes'",
    "arms.warm.kl_penalty=0.1": "arms.warm: unknown key 'kl_penalty'",
    "arms.r={from='base', method='reinforce', clip_ratio=0.2}": "arms.r: unknown key 'clip_ratio'",
    "task.usrs=1": "task: unknown key 'usrs'; did you mean 'users'?",
    "modl.base=tiny": "unknown table 'modl'; did you mean 'model'?",
    "sampling.zzz=1": "sampling: unknown key 'zzz'",
    "arms.grpo.learning_rate=-1e-5": "arms.grpo.learning_rate: must be greater than 0 (found -1e-05)",
    "arms.grpo.learning_rate=nan": "arms.grpo.learning_rate: must be a finite number (found NaN)",
    "arms.grpo.kl_penalty=inf": "arms.grpo.kl_penalty: must be a finite number (found Infinity)",
    "task.share=nan": "task.share: must be a finite number (found NaN)",
    "arms.grpo.learning_rate='1e-5'": 'arms.grpo.learning_rate: must be a number (found "1e-5")',
    "trial.seed='4'": 'trial.seed: must be a whole number (found "4")',
    "trial.seed=1.0": "trial.seed: must be a whole number (found 1.0)",
    "trial.seed=true": "trial.seed: must be a whole number (found true)",
    "trial.seed=-1": "trial.seed: must be greater than or equal to 0 (found -1)",
    "trial.name=Small": "trial.name: must be of small letters, digits and hyphens",
    "trial.name=../up": "trial.name: must be of small letters, digits and hyphens",
    "trial.name=": "trial.name: must be of small letters, digits and hyphens",
    "trial.control=wrm": "trial.control: unknown arm 'wrm'; did you mean 'warm'?",
    "trial.control=zzz": "trial.control: unknown arm 'zzz' (arms: grpo, base, warm)",
    "model.dtype=fp32": "model.dtype: must be 'float32' or 'bfloat16' (found \"fp32\")",
    "model.tf32=1": "model.tf32: must be true or false (found 1)",
    "model.base=tinny": "model.base: did you mean 'tiny'? 'tinny' is neither a bundled model (smollm2-135m, ",
    "model.base=gemini": "model.base: 'gemini' is neither a bundled model (smollm2-135m, tiny,",
    "model.revision=main": 'model.revision: must be a commit of 40 hex digits (found "main")',
    f"model.revision={'a' * 40}": "model.revision: is of no use here: only a hub model has one, and 'tiny'",
    "adapter.targets=[]": "adapter.targets: must not be empty (found [])",
    "adapter.targets=q_proj": 'adapter.targets: must be a list (found "q_proj")',
    "adapter.targets=['q', 'q']": "adapter.targets: 'q' stands twice",
    "adapter.dropout=0.1": "adapter.dropout: must be 0, as arm 'grpo' has to be trained as it sampled",
    "adapter.dropout=1.0": "adapter.dropout: must be less than 1 (found 1.0)",
    "sampling.temperature=0": "sampling.temperature: must be greater than 0 (found 0)",
    "sampling.top_p=0.9": "sampling.top_p: only 1.0 is supported (found 0.9): log-probabilities are of the ",
    "sampling.top_k=20": "sampling.top_k: only 0 is supported (found 20): log-probabilities are of the",
    "sampling.max_completion_tokens=2048": "sampling.max_completion_tokens: 2048 leaves no room for a prompt",
    "sampling.candidates=1": "sampling.candidates: arm 'grpo' compares the candidates of a group: it needs ",
    "arms.grpo.candidates=1": "arms.grpo.candidates: arm 'grpo' compares the candidates of a group: it",
    "arms={}": 'arms: no arm: write at least [arms.base] with method = "none"',
    "arms=3": "arms: must be a table (found 3)",
    "arms.grpo=3": "arms.grpo: must be a table (found 3)",
    "arms.grpo={from='warm'}": "arms.grpo.method: is required: one of none, supervised, grpo, reinforce",
    "arms.grpo.method=grop": "arms.grpo.method: must be one of none, supervised, grpo, reinforce (found",
    "arms.grpo.method=zzz": "arms.grpo.method: must be one of none, supervised, grpo, reinforce (found",
    "arms.grpo={method='grpo'}": "arms.grpo.from: is required",
    "arms.grpo.from=x": "arms.grpo.from: unknown arm 'x' (arms: grpo, base, warm)",
    "arms.grpo.from=grpo": "arms.grpo.from: an arm cannot start from itself",
    "arms.base.from=warm": "arms.base.from: an untrained arm starts from no other; leave this out, or ",
    "arms.Big={method='none'}": "arms.Big: an arm's name is of small letters, digits, '-' and '_', and",
    "evaluation.seeds=[]": "evaluation.seeds: must not be empty (found [])",
    "evaluation.seeds=[1, 1]": "evaluation.seeds: seed 1 stands twice: the same samples would count twice",
    "evaluation.in_sample_seeds=[1]": "evaluation.in_sample_seeds: has no use without in_sample = true",
    "evaluation.arms=['base']": "evaluation.arms: the control 'warm' has to be evaluated: add it",
    "evaluation.arms=['warm', 'bse']": "evaluation.arms: unknown arm 'bse'; did you mean 'base'?",
    "evaluation.arms=['warm', 'warm']": "evaluation.arms: 'warm' stands twice",
    "evaluation={split='train', in_sample=true}": "evaluation.in_sample: the split is the training split ",
    "task=3": "task: must be a table (found 3)",
    "task.kind=3": "task.kind: must be a text (found 3)",
    "task={users=3}": "task.kind: is required",
    "task.note=secret": "task.note: a note is no place for a secret",
    "task.users=0": "task.users: must be greater than or equal to 1 (found 0)",
    "task.kind=nots": "task.kind: unknown task 'nots'; did you mean 'notes'? (known: notes, repair; a task",
    "task.kind=zzz": "task.kind: unknown task 'zzz' (known: notes, repair; a task of your own",
    "task.kind=no_such:Task": "task.kind: task 'no_such:Task' cannot be imported: No module named 'no_such'",
    "task.kind=fake_task:Nobody": "task.kind: task 'fake_task:Nobody' cannot be imported: module",
    "task.kind=fake_task:NoTask": "task.kind: task 'fake_task:NoTask' is not a task: it lacks",
    "task.kind=fake_task:not_a_class": "task.kind: task 'fake_task:not_a_class' is not a task: it is no",
    "task.kind=fake_task:NoOptionsModel": "task.kind: task 'fake_task:NoOptionsModel' is not a task: its ",
    "task.kind=fake_task:LaxTask": "task.kind: task 'fake_task:LaxTask' would ignore unknown options: set ",
}


@pytest.mark.parametrize(("override", "start"), BAD.items(), ids=BAD.keys())
def test_a_bad_value_is_refused_with_where_and_what(override: str, start: str) -> None:
    assert with_set(override).startswith(start)


DEEP, DEEPER = "[" * 300 + "]" * 300, "[" * 5000 + "]" * 5000

BAD_TEXT = {
    "[trial]\nname = ]": "is not valid TOML: Invalid value (at line 2, column 8)",
    "": "trial: is required (and 3 more)",
    TRIAL.replace('"small"', "2026-03-02"): "the date or time 2026-03-02 has to stand in quotes",
    TRIAL.replace("3", DEEP): "a value is nested too deeply or is not valid Unicode",
    TRIAL.replace("3", DEEPER): "is not valid TOML: nested too deeply",
    TRIAL.replace("3", "{ a = 1 }"): 'task.users: must be a whole number (found {"a": 1})',
    TRIAL.replace("3", f'"{"x" * 99}"'): f'task.users: must be a whole number (found "{"x" * 59}...)',
    TRIAL.replace("3", "3\nzzz = 1\nzzzz = 1"): "task: unknown key 'zzz' (and 1 more)",
}


@pytest.mark.parametrize(("text", "line"), BAD_TEXT.items(), ids=range(len(BAD_TEXT)))
def test_a_bad_file_is_refused_in_one_line(text: str, line: str) -> None:
    assert refused(text) == f"trials/x.toml: {line}"


def test_arms_in_a_circle_are_refused_with_the_whole_circle() -> None:
    line = refused(TRIAL, "arms.warm.from=grpo")
    assert (
        line == "trials/x.toml: arms.grpo.from: arms run in a circle: grpo from warm from grpo (and 1 more)"
    )


def test_a_hub_model_without_its_commit_is_refused() -> None:
    line = refused(TRIAL, "model.base=Qwen/Qwen3-4B")
    said = "is required for the hub model 'Qwen/Qwen3-4B': its commit, 40 hex digits"
    assert line == f"trials/x.toml: model.revision: {said}"


def test_an_unknown_key_is_told_before_the_missing_key_that_it_misspells() -> None:
    line = refused(TRIAL.replace('base = "tiny"', 'bse = "tiny"'))
    assert line == "trials/x.toml: model: unknown key 'bse'; did you mean 'base'? (and 1 more)"


def test_an_unknown_table_within_the_options_of_a_task_has_no_suggestion_to_make() -> None:
    assert (
        with_set("arms.base.method.deep=1")
        == "--set arms.base.method.deep=1: arms.base.method is not a table"
    )


@pytest.mark.parametrize("base", ["/models/qwen", "./qwen", "../qwen", "~/qwen"])
def test_a_path_to_a_model_starts_like_a_path(base: str) -> None:
    model = parse(TRIAL, overrides=[f"model.base={base}"]).model
    assert (model.base, model.source) == (base, "path")


def test_a_hub_model_comes_with_its_commit() -> None:
    model = parse(TRIAL, overrides=["model.base=Qwen/Qwen3-4B", f"model.revision={'0a' * 20}"]).model
    assert (model.source, ModelSpec(base="tiny").source) == ("hub", "bundled")


def test_dropout_is_accepted_where_no_arm_learns_from_its_own_samples() -> None:
    without = TRIAL.replace('[arms.grpo]\nfrom = "warm"\nmethod = "grpo"', "")
    assert parse(without, overrides=["adapter.dropout=0.1"]).adapter.dropout == 0.1
    assert parse(without, overrides=["sampling.candidates=1"]).sampling.candidates == 1


def test_an_override_reaches_keys_whose_table_the_file_does_not_have() -> None:
    spec = parse(TRIAL, overrides=["evaluation.seeds=[1, 2]", "arms.grpo.max_groups = 3"])
    assert spec.evaluation.seeds == (1, 2)
    assert spec.arms["grpo"].max_groups == 3


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("plain", "plain"),
        ("'4'", "4"),
        ("two words", "two words"),
        ("[1", "[1"),
        ("1\nb = 2", "1\nb = 2"),
        ("", ""),
    ],
)
def test_what_is_no_toml_value_is_itself(written: str, value: str) -> None:
    assert parse(TRIAL, overrides=[f"task.note={written}"]).task.options.note == value


@pytest.mark.parametrize("override", ["", "trial.seed", "=1", "trial.=1", "trial..seed=1"])
def test_an_override_that_is_no_key_and_value_is_refused(override: str) -> None:
    assert with_set(override) == f"--set {override}: write it as key.path=value, such as trial.seed=7"


def test_a_fault_of_the_file_is_not_blamed_on_an_override() -> None:
    assert refused(TRIAL + "[sampling]\ntop_p = 0.5", "trial.seed=1").startswith(
        "trials/x.toml: sampling.top_p: "
    )


def test_arms_are_ordered_after_what_they_start_from_and_otherwise_as_written() -> None:
    spec = parse(TRIAL, overrides=["arms.late={from='base', method='supervised'}"])
    assert list(spec.arms) == ["grpo", "base", "warm", "late"]
    assert arm_order(spec) == ["base", "warm", "grpo", "late"]


def test_every_arm_is_evaluated_unless_some_are_chosen() -> None:
    assert parse(TRIAL).evaluated_arms == ("grpo", "base", "warm")
    assert parse(TRIAL, overrides=["evaluation.arms=['warm', 'grpo']"]).evaluated_arms == ("grpo", "warm")


def test_candidates_are_those_of_sampling_unless_an_arm_or_the_evaluation_has_its_own() -> None:
    spec = parse(TRIAL, overrides=["arms.grpo.candidates=8", "sampling.candidates=6"])
    assert (spec.training_candidates("grpo"), spec.training_candidates("warm")) == (8, 6)
    assert spec.evaluation_candidates == 6
    assert parse(TRIAL, overrides=["evaluation.candidates=2"]).evaluation_candidates == 2


def test_in_sample_evaluation_takes_the_seeds_of_the_evaluation_unless_it_has_its_own() -> None:
    assert parse(TRIAL).in_sample_seeds == ()
    assert parse(TRIAL, overrides=["evaluation.in_sample=true"]).in_sample_seeds == (7319,)
    own = ["evaluation.in_sample=true", "evaluation.in_sample_seeds=[1, 2]"]
    assert parse(TRIAL, overrides=own).in_sample_seeds == (1, 2)


def test_the_resolved_file_says_every_default_and_what_is_not_set() -> None:
    text = resolved_toml(parse(TRIAL))
    for line in (
        "temperature = 1.0",
        "kl_penalty = 0.02",
        'split = "eval"',
        "# revision is not set",
        "share = 0.5",
    ):
        assert line in text.splitlines()


def finite(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, exclude_min=True)


ARMS = st.one_of(
    st.fixed_dictionaries(
        {"method": st.just("supervised"), "learning_rate": finite(0, 1)},
        optional={
            "max_examples": st.integers(1, 99),
            "seed": st.integers(0, 2**63 - 1),
            "batch_size": st.integers(1, 9),
        },
    ),
    st.fixed_dictionaries(
        {"method": st.just("grpo")},
        optional={
            "kl_penalty": finite(0, 9),
            "clip_ratio": finite(0, 0.99),
            "candidates": st.integers(2, 64),
        },
    ),
    st.fixed_dictionaries({"method": st.just("reinforce")}, optional={"max_groups": st.integers(1, 99)}),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def trials(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}", fullmatch=True), unique=True, max_size=4))
    names = ["base", *(name for name in names if name != "base")]
    arms: dict[str, Any] = {"base": {"method": "none"}}
    for name in names[1:]:
        arms[name] = {**draw(ARMS), "from": draw(st.sampled_from(list(arms)))}
    shuffled = draw(st.permutations(list(arms)))
    return {
        "trial": {
            "name": "x",
            "control": draw(st.sampled_from(names)),
            "seed": draw(st.integers(0, 2**63 - 1)),
        },
        "model": draw(
            st.sampled_from([{"base": "tiny"}, {"base": "a/b", "revision": "0" * 40}, {"base": "./é"}])
        ),
        "task": {
            "kind": "fake_task:FakeTask",
            **draw(
                st.fixed_dictionaries(
                    {},
                    optional={
                        "note": TEXT,
                        "layouts": st.lists(TEXT, max_size=3),
                        "share": finite(-1e300, 1e300),
                    },
                )
            ),
        },
        "sampling": {"temperature": draw(finite(0, 100))},
        "arms": {name: arms[name] for name in shuffled},
    }


@given(trials())
@settings(deadline=None, derandomize=True, max_examples=60)
def test_a_trial_written_back_with_every_default_reads_back_equal(trial: dict[str, Any]) -> None:
    spec = parse(tomli_w.dumps(trial))
    again = parse(resolved_toml(spec))
    assert again == spec
    assert list(again.arms) == list(spec.arms)
    assert spec_hash(again) == spec_hash(spec)
    assert resolved_toml(again) == resolved_toml(spec)


@given(trials())
@settings(deadline=None, derandomize=True, max_examples=30)
def test_the_order_of_arms_is_complete_and_puts_every_parent_first(trial: dict[str, Any]) -> None:
    spec = parse(tomli_w.dumps(trial))
    order = arm_order(spec)
    assert sorted(order) == sorted(spec.arms)
    for name in order:
        parent = spec.arms[name].parent
        assert parent is None or order.index(parent) < order.index(name)


@given(st.text(max_size=200) | st.text(alphabet='[]{}=."trialmode \n0123456789', max_size=200))
@settings(deadline=None, derandomize=True, max_examples=200)
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    assert refused(text).startswith("trials/x.toml: ")


@given(
    st.text(max_size=40),
    st.sampled_from(["trial.name", "arms.grpo", "task", "model.base", "arms", "evaluation"]),
)
@settings(deadline=None, derandomize=True, max_examples=200)
def test_any_override_is_taken_or_refused_in_one_line(value: str, key: str) -> None:
    try:
        spec = parse(TRIAL, overrides=[f"{key}={value}"])
    except TrialFileError:
        refused(TRIAL, f"{key}={value}")
    else:
        assert parse(resolved_toml(spec)) == spec


def test_the_hash_hangs_on_what_the_trial_says_and_not_on_how_it_is_written() -> None:
    spec = parse(TRIAL)
    assert spec_hash(parse("# a remark\n" + TRIAL, overrides=["trial.seed=2718"])) == spec_hash(spec)
    assert spec_hash(parse(TRIAL, overrides=["trial.seed=2719"])) != spec_hash(spec)
    assert spec_hash(parse(TRIAL, overrides=["task.share=0.25"])) != spec_hash(spec)
    assert len(spec_hash(spec)) == 64
    assert canonical_json(spec).startswith('{"adapter":{"alpha":32,')


def test_a_file_is_loaded_with_its_name_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TRIAL.replace("\n", "\r\n").encode())
    assert load(path) == parse(TRIAL)
    assert load(str(path), ["trial.seed=1"]).trial.seed == 1
    path.write_text("x = ]")
    with pytest.raises(TrialFileError, match=r"x\.toml: is not valid TOML: .*line 1"):
        load(path)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "folder: is a folder; name the trial file in it"),
        ("latin.toml", "latin.toml: is not UTF-8 text (byte 5); save it as UTF-8"),
        ("ltin.toml", "ltin.toml: no such file; did you mean "),
        ("nothing", "nothing: no such file"),
        ("latin.toml/inner", "latin.toml/inner: cannot be read: Not a directory"),
        ("null\0byte", "cannot be read: embedded null byte"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.toml").write_bytes("a = 'é'".encode("latin-1")[:-1] + b"\xff'")
    with pytest.raises(TrialFileError) as refusal:
        load(tmp_path / name)
    assert said in str(refusal.value)


def test_a_task_is_found_by_its_kind_or_by_where_it_is() -> None:
    assert "notes" in known_kinds()
    assert find_task("fake_task:FakeTask").kind == "fake"
    with pytest.raises(TrialFileError, match="unknown task"):
        find_task("nothing-like-it")


@pytest.mark.parametrize("path", sorted(TRIALS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_ready_trials_are_good_and_are_named_as_their_files(path: Path) -> None:
    spec = load(path)
    assert spec.trial.name == path.stem
    assert parse(resolved_toml(spec)) == spec

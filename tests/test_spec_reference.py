"""The page on the trial file says what the models say."""

from pathlib import Path

import pytest

from loratrial import spec_reference
from loratrial.spec import BUNDLED_MODELS, parse, resolved_toml
from loratrial.spec_reference import EXAMPLE, PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "rewrite it: make docs"


def test_the_page_is_rewritten_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec_reference, "PAGE", tmp_path / "page.md")
    spec_reference.main()
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page()


def test_the_example_of_the_page_is_a_good_trial() -> None:
    assert list(parse(EXAMPLE).arms) == ["base", "warm", "grpo"]


def test_every_key_of_a_resolved_trial_stands_in_the_page_with_a_meaning() -> None:
    arms = "[arms.two]\nfrom = 'warm'\nmethod = 'reinforce'\n"
    keys = [
        line.removeprefix("# ").split()[0]
        for line in resolved_toml(parse(EXAMPLE + arms)).splitlines()
        if line
    ]
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    for key in keys:
        if key[0].isalpha() and key != "method":
            assert any(row.startswith(f"| `{key}` |") for row in rows), key
    assert all(len(row.rstrip("| ").split(" | ")[-1]) > 10 for row in rows)


def test_defaults_bounds_and_choices_are_shown() -> None:
    rows = page().splitlines()
    assert any(row.startswith("| `clip_ratio` | number > 0, < 1 | `0.2` |") for row in rows)
    assert any(row.startswith('| `dtype` | `"float32"` or `"bfloat16"` | `"float32"` |') for row in rows)
    assert any(row.startswith("| `max_groups` | whole number ≥ 1 | not set |") for row in rows)
    assert any(row.startswith("| `control` | text | required |") for row in rows)


def test_every_bundled_model_is_named() -> None:
    assert all(f"`{name}`" in page() for name in BUNDLED_MODELS)

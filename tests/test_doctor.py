"""The report on the machine, and what it warns of."""

import builtins
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loratrial import doctor
from loratrial.policy import bundled


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LORATRIAL_CACHE", str(tmp_path / "not" / "there"))
    return tmp_path


def healthy() -> dict[str, Any]:
    return {
        "packages": {"torch": "2"},
        "cpu": {"cores": 4, "threads": 4},
        "memory": {"total": 2**34, "available": None},
        "disk": {"runs": {"path": "/r", "free": 10**12}, "models": {"path": "/m", "free": 10**12}},
        "models": [{"name": "smollm2-135m", "cached": False, "path": "/m"}],
    }


def test_the_report_is_json_and_knows_the_disk_of_a_cache_that_does_not_exist_yet() -> None:
    report = doctor.examine()
    assert json.loads(json.dumps(report)) == report
    assert report["disk"]["models"]["free"] > 0
    assert report["packages"]["torch"]
    assert "notes" in report["tasks"]
    assert report["cpu"]["cores"] >= 1


def test_a_model_that_is_not_here_is_named_with_the_command_that_fetches_it() -> None:
    text = doctor.render(doctor.examine())
    assert (
        "smollm2-135m: not here yet; the first run fetches it, or: loratrial doctor --fetch smollm2-135m"
        in text
    )


def test_a_model_at_hand_is_named_with_its_folder() -> None:
    bundled.cache_folder().mkdir(parents=True)
    (bundled.cache_folder() / bundled.SEAL).write_text("{}")
    assert f"at hand in {bundled.cache_folder()}" in doctor.render(doctor.examine())


def test_a_healthy_machine_has_no_warning() -> None:
    assert doctor.warnings_of(healthy()) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"packages": {"torch": None, "peft": "1"}}, "not installed: torch;"),
        ({"cpu": {"cores": 4, "threads": 1}}, "torch has 4 cores and uses 1: "),
        ({"memory": {"total": 2 * 10**9, "available": None}}, "2.0 GB of memory"),
        (
            {"disk": {"models": {"path": "/m", "free": 10**8}}},
            "0.1 GB free at /m, too little to fetch smollm2-135m",
        ),
    ],
)
def test_what_may_stop_a_trial_is_warned_of(change: dict[str, Any], expected: str) -> None:
    (warning,) = doctor.warnings_of({**healthy(), **change})
    assert warning.startswith(expected)


def test_little_disk_is_no_matter_once_the_model_is_there() -> None:
    full = {
        "disk": {"models": {"path": "/m", "free": 0}},
        "models": [{"name": "m", "cached": True, "path": "/m"}],
    }
    assert doctor.warnings_of({**healthy(), **full}) == []


def test_what_is_unknown_is_not_warned_of_and_reads_unknown() -> None:
    report = {
        **doctor.examine(),
        "memory": {"total": None, "available": None},
        "cpu": {"cores": 2, "threads": None},
    }
    assert doctor.warnings_of(report) == []
    text = doctor.render({**report, "warnings": []})
    assert "unknown, unknown available" in text
    assert "unknown torch threads" in text


def test_a_container_with_a_limit_has_only_that_much_memory(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text("1000\n")
    assert doctor.total_memory(limit) == 1000
    limit.write_text("max\n")
    assert doctor.total_memory(limit) == doctor.total_memory(tmp_path / "none")


def test_a_system_that_does_not_tell_its_memory_has_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(doctor.os, "sysconf", refuse)
    monkeypatch.setattr(doctor, "_available_memory", lambda: None)
    assert doctor.examine()["memory"] == {"total": None, "available": None}


def test_available_memory_is_read_in_bytes(tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    assert doctor._available_memory(file) is None
    file.write_text("MemTotal: 9 kB\nMemAvailable:  7 kB\n")
    assert doctor._available_memory(file) == 7 * 1024


def test_cores_are_those_of_the_process_where_the_system_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda process: {0, 1, 5}, raising=False)
    assert doctor.cores() == 3
    monkeypatch.delattr(doctor.os, "sched_getaffinity")
    monkeypatch.setattr(doctor.os, "cpu_count", lambda: None)
    assert doctor.cores() == 1


def test_a_torch_that_cannot_be_imported_is_reported_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_torch(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "torch":
            raise OSError("libcudart.so is missing")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_torch)
    monkeypatch.setattr(doctor, "version", lambda name: "1")
    report = doctor.examine()
    assert report["packages"]["torch"] is None
    assert report["cpu"]["threads"] is None
    assert "torch missing" in doctor.render(report)


def test_every_gpu_is_named_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    device = SimpleNamespace(name="H200", total_memory=139_000_000_000)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: device)
    report = doctor.examine()
    assert report["gpus"] == [{"name": "H200", "memory": 139_000_000_000}] * 2
    assert doctor.render(report).count("H200, 139.0 GB") == 2


def test_a_package_that_is_not_installed_has_no_version() -> None:
    assert doctor._version("no-such-package-anywhere") is None

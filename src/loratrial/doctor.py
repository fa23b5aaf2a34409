"""What this machine offers a trial: versions, cores, memory, disk, GPU, and which models are at hand.

Nothing is changed and nothing is fetched here. Left out: any benchmark; `loratrial run --dry-run` estimates a
trial's cost.
"""

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from loratrial import __version__
from loratrial.policy import bundled
from loratrial.tasks.registry import known_kinds

PACKAGES = ("torch", "transformers", "peft", "safetensors", "tokenizers", "huggingface-hub", "numpy", "scipy")
LITTLE_MEMORY = 4 * 2**30
"""Bytes below which training the bundled model may not fit."""


def examine() -> dict[str, Any]:
    """Everything as JSON: sizes in bytes, None for what is unknown, and `warnings` as sentences."""
    report: dict[str, Any] = {
        "loratrial": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "cpu": {"cores": cores(), "threads": None},
        "gpus": [],
        "memory": {"total": total_memory(), "available": _available_memory()},
        "disk": _disk(),
        "models": [_bundled_model()],
        "tasks": list(known_kinds()),
    }
    report.update(_torch(report))
    return {**report, "warnings": warnings_of(report)}


def warnings_of(report: dict[str, Any]) -> list[str]:
    """What of a report is likely to slow or stop a trial, each with what to do."""
    found: list[str] = []
    missing = [name for name, found_version in report["packages"].items() if found_version is None]
    if missing:
        found.append(f"not installed: {', '.join(missing)}; install loratrial again")
    threads, n_cores = report["cpu"]["threads"], report["cpu"]["cores"]
    if threads is not None and threads != n_cores:
        found.append(
            f"torch has {n_cores} cores and uses {threads}: unset OMP_NUM_THREADS or set model.threads"
        )
    memory = report["memory"]["total"]
    if memory is not None and memory < LITTLE_MEMORY:
        found.append(f"{_gigabytes(memory)} of memory: lower sampling.candidates and sampling.max_tokens")
    models_disk = report["disk"]["models"]
    missing_models = [model["name"] for model in report["models"] if not model["cached"]]
    if missing_models and models_disk["free"] < bundled.BYTES_NEEDED:
        found.append(
            f"{_gigabytes(models_disk['free'])} free at {models_disk['path']}, too little to fetch "
            f"{missing_models[0]}: free some, or set LORATRIAL_CACHE to a larger disk"
        )
    return found


def render(report: dict[str, Any]) -> str:
    """The report as lines for a reader."""
    cpu, memory = report["cpu"], report["memory"]
    rows = [
        ("loratrial", f"{report['loratrial']}, Python {report['python']}, {report['platform']}"),
        ("packages", ", ".join(f"{name} {found or 'missing'}" for name, found in report["packages"].items())),
        ("processor", f"{cpu['cores']} cores, {cpu['threads'] or 'unknown'} torch threads"),
        *[("GPU", f"{gpu['name']}, {_gigabytes(gpu['memory'])}") for gpu in report["gpus"]],
        *([] if report["gpus"] else [("GPU", "none")]),
        ("memory", f"{_gigabytes(memory['total'])}, {_gigabytes(memory['available'])} available"),
        *[
            (f"disk ({use})", f"{_gigabytes(at['free'])} free at {at['path']}")
            for use, at in report["disk"].items()
        ],
        *[("model", f"{model['name']}: {_state(model)}") for model in report["models"]],
        ("tasks", ", ".join(report["tasks"]) or "none"),
        *[("warning", warning) for warning in report["warnings"]],
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def total_memory(limit_file: Path = Path("/sys/fs/cgroup/memory.max")) -> int | None:
    """Memory in bytes: the machine's, or the container's limit when that is lower. None when unknown."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(machine, int(limit_file.read_text()))
    except (OSError, ValueError):
        return machine


def _available_memory(file: Path = Path("/proc/meminfo")) -> int | None:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _disk() -> dict[str, dict[str, Any]]:
    """Free bytes where runs are written and where models are kept."""
    places = {"runs": Path.cwd(), "models": bundled.cache_folder()}
    return {use: {"path": str(path), "free": _free(path)} for use, path in places.items()}


def _free(path: Path) -> int:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    return shutil.disk_usage(existing).free


def _bundled_model() -> dict[str, Any]:
    return {
        "name": bundled.BUNDLED_NAME,
        "cached": bundled.is_cached(),
        "path": str(bundled.cache_folder()),
    }


def _torch(report: dict[str, Any]) -> dict[str, Any]:
    """What only torch knows: its threads and the GPUs; nothing when it cannot be imported."""
    try:
        import torch
    except (ImportError, OSError):
        return {"packages": {**report["packages"], "torch": None}}
    gpus = []
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            device = torch.cuda.get_device_properties(index)
            gpus.append({"name": device.name, "memory": device.total_memory})
    return {"cpu": {**report["cpu"], "threads": torch.get_num_threads()}, "gpus": gpus}


def _state(model: dict[str, Any]) -> str:
    if model["cached"]:
        return f"at hand in {model['path']}"
    return f"not here yet; the first run fetches it, or: loratrial doctor --fetch {model['name']}"


def _gigabytes(n_bytes: int | None) -> str:
    return "unknown" if n_bytes is None else f"{n_bytes / 1e9:.1f} GB"

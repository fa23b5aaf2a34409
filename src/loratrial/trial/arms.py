"""When a trained arm can be used again: its fingerprint, and the search for it beside the run.

A fingerprint covers everything that the weights depend on: base, template, adapter, task, data, sampling,
seed, the arm's own settings and the fingerprints of the arms that it needs. Evaluation settings are not in
it.
"""

import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from loratrial import __version__
from loratrial.errors import RunFolderError
from loratrial.evidence.folder import FORMAT, RunFolder, read_object
from loratrial.evidence.jsonio import canonical
from loratrial.evidence.opened import OpenedRun
from loratrial.spec import arm_order, needs


def fingerprints(run: OpenedRun, base: Mapping[str, str], data_sha256: str) -> dict[str, str]:
    """The fingerprint (hex) of every arm; `base` identifies the base model and its chat template."""
    spec = run.spec
    model = spec.model.model_dump(mode="json", exclude={"base", "revision", "threads"})
    shared = {
        "package": __version__,
        "base": dict(base),
        "model": model,
        "adapter": spec.adapter.model_dump(mode="json"),
        "task": spec.task.model_dump(mode="json"),
        "scorer": run.task.scorer_version,
        "data": data_sha256,
        "sampling": spec.sampling.model_dump(mode="json"),
        "seed": spec.trial.seed,
    }
    result: dict[str, str] = {}
    for name in arm_order(spec):
        arm = spec.arms[name]
        before = [result.get(needed) for needed in needs(spec, name)]
        own = {"name": name, "arm": arm.model_dump(mode="json"), "needs": before}
        result[name] = sha256(canonical({**shared, **own}).encode()).hexdigest()
    return result


def is_trained(folder: RunFolder, arm: str, fingerprint: str) -> bool:
    """Whether `arm` stands in the run, whole and unchanged.

    Raises RunFolderError when what stands there was trained differently.
    """
    if not folder.arm_file(arm).exists():
        return False
    entry = read_object(folder.arm_file(arm))
    if entry.get("fingerprint") != fingerprint:
        raise RunFolderError(
            f"{folder.arm(arm)} was trained with other settings, data or version; "
            "run the trial into another folder with --to, or anew with --again"
        )
    return bool(entry.get("complete"))


def reuse(folder: RunFolder, arm: str, fingerprint: str) -> Path | None:
    """Copy `arm` from a run beside this one that trained exactly the same; returns where from, or None."""
    for other in sorted(folder.root.parent.iterdir()):
        candidate = RunFolder(other)
        if other == folder.root or not candidate.arm_file(arm).is_file():
            continue
        try:
            said, entry = candidate.read_run(), read_object(candidate.arm_file(arm))
        except RunFolderError:
            continue
        if said["format"] != FORMAT or entry.get("fingerprint") != fingerprint or not entry.get("complete"):
            continue
        weights = candidate.adapter(arm) / "adapter_model.safetensors"
        if not weights.is_file() or sha256(weights.read_bytes()).hexdigest() != entry.get("adapter_sha256"):
            continue
        beside = folder.arm(arm).with_name(arm + ".tmp")
        shutil.rmtree(beside, ignore_errors=True)
        shutil.copytree(candidate.arm(arm), beside)
        shutil.rmtree(folder.arm(arm), ignore_errors=True)
        beside.rename(folder.arm(arm))
        return other
    return None

"""Repair of a broken expression: four candidates, one right, told apart by hidden inputs."""

from loratrial.tasks.repair.baselines import Baseline, baseline_report
from loratrial.tasks.repair.options import RepairOptions
from loratrial.tasks.repair.task import RepairTask, write_dataset

__all__ = ["Baseline", "RepairOptions", "RepairTask", "baseline_report", "write_dataset"]

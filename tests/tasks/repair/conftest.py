import pytest

from loratrial.tasks.repair import RepairOptions, RepairTask


@pytest.fixture(scope="session")
def default_task() -> RepairTask:
    """The default set with its sealed split; made once, since it takes seconds."""
    return RepairTask.create(RepairOptions(unseal=True), None, seed=0)


@pytest.fixture(scope="session")
def small_options() -> RepairOptions:
    return RepairOptions(families=("sums", "membership"), train=6, dev=2, test=2)


@pytest.fixture(scope="session")
def small_task(small_options: RepairOptions) -> RepairTask:
    return RepairTask.create(small_options, None, seed=3)

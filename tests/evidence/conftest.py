import shutil

import pytest
from evidence_toy import Writer


@pytest.fixture(scope="session")
def pristine(tmp_path_factory):
    """One complete run of the toy task, not to be changed."""
    root = tmp_path_factory.mktemp("toy") / "run"
    Writer(root).write()
    return root


@pytest.fixture
def run(pristine, tmp_path):
    """A copy of the run, to be tampered with."""
    return shutil.copytree(pristine, tmp_path / "run")

"""What all tests share."""

import logging
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # a busy machine is no reason to fail

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _process_as_before():
    """Training sets threads and denormals for its process; the tests after it shall not notice."""
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else None
    yield
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads or torch.get_num_threads())
        torch.set_flush_denormal(False)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the project; tests that need it are skipped where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the folder of real data beside the project, which is not here")
    return folder


@pytest.fixture
def said(caplog):
    """What the package said since the last call, without how far its loops are."""
    caplog.set_level(logging.INFO, "pdc_sfm")

    def take() -> list[str]:
        lines = [record.getMessage() for record in caplog.records if record.name != "pdc_sfm.progress"]
        caplog.clear()
        return lines

    return take

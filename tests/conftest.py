"""What all tests share."""

import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # a busy machine is no reason to fail

ROOT = Path(__file__).resolve().parents[1]


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

"""The command line answers at once, and its mistakes are one line."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from pdc_sfm.cli import VERBS, main
from pdc_sfm.images import write_image

HEAVY = ("torch", "cv2", "h5py", "pycolmap", "scipy", "matplotlib", "numpy")


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom pdc_sfm.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "HEAVY []" in shown
    assert all(verb in shown for verb in VERBS)


def test_importing_the_package_prints_nothing():
    run = subprocess.run([sys.executable, "-c", "import pdc_sfm"], capture_output=True, text=True, check=True)
    assert run.stdout == run.stderr == ""


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_with_an_example(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    assert f"pdc-sfm {verb}" in capsys.readouterr().out


def test_an_unknown_verb_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["mach"])
    assert stop.value.code == 2
    assert "invalid choice: 'mach'" in capsys.readouterr().err


def test_an_option_that_is_given_as_a_setting_is_named(tmp_path, capsys):
    for name in ("a.png", "b.png"):
        write_image(tmp_path / name, np.zeros((32, 32, 3), np.uint8))
    words = ["pair", str(tmp_path / "a.png"), str(tmp_path / "b.png"), "--output", str(tmp_path / "c.png")]
    assert main([*words, "device=cpu"]) == 2
    assert capsys.readouterr().err.rstrip().endswith("; --device is an option")
    assert main([*words, "devise=cpu"]) == 2
    assert "option" not in capsys.readouterr().err

"""Torch is loaded when something is computed, not when settings are read."""

import subprocess
import sys


def test_settings_selection_and_snapping_load_no_torch():
    code = (
        "import sys, pdc_sfm, pdc_sfm.matcher, pdc_sfm.matches.snap, pdc_sfm.keypoints.detectors\n"
        "pdc_sfm.PairSettings(); assert 'torch' not in sys.modules, 'torch'; assert 'cv2' not in sys.modules, 'cv2'\n"
        "assert callable(pdc_sfm.match_images)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

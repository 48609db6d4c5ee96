"""The paper's own figures (Truong et al., PDC-Net+, Tab. 1-5 and appendix), printed beside measured rows.

They are those of the authors' network; they say what the protocol gives with it, not what this package measured.
"""

from __future__ import annotations

# measure names as in `DenseScores.summary` (shares in per cent here)
FLOW: dict[str, dict[str, dict[str, float]]] = {
    "megadepth": {
        "PDC-Net+ (D)": {"pck_1": 72.41, "pck_3": 86.70, "pck_5": 88.12},
        "PDC-Net+ (H)": {"pck_1": 73.92, "pck_3": 89.21, "pck_5": 90.48},
        "PDC-Net+ (MS)": {"pck_1": 74.51, "pck_3": 90.69, "pck_5": 92.10},
    },
    "robotcar": {
        "PDC-Net+ (D)": {"pck_1": 2.57, "pck_3": 19.12, "pck_5": 36.71},
        "PDC-Net+ (H)": {"pck_1": 2.56, "pck_3": 19.00, "pck_5": 36.56},
        "PDC-Net+ (MS)": {"pck_1": 2.63, "pck_3": 19.01, "pck_5": 36.57},
    },
    "hpatches240": {
        "PDC-Net+ (H)": {"aepe": 4.29, "pck_1": 86.56, "pck_5": 94.97},
        "PDC-Net+ (MS)": {"aepe": 3.59, "pck_1": 87.83, "pck_5": 96.36},
    },
    "kitti2012": {"PDC-Net+ (D)": {"aepe": 1.76, "fl": 6.60}},
    "kitti2015": {"PDC-Net+ (D)": {"aepe": 4.53, "fl": 12.62}},
}

_INTERVALS = (3, 5, 7, 9, 11, 13, 15)
ETH3D: dict[str, dict[str, tuple[float, ...]]] = {  # by interval
    "PDC-Net+ (H)": {
        "aepe": (1.56, 1.74, 1.96, 2.18, 2.48, 2.73, 3.22),
        "pck_1": (63.12, 59.93, 56.81, 54.12, 51.59, 49.55, 47.32),
        "pck_5": (93.54, 92.78, 92.04, 91.30, 90.60, 89.9, 89.03),
    },
    "PDC-Net+ (MS)": {
        "aepe": (1.58, 1.76, 1.96, 2.16, 2.49, 2.73, 3.24),
        "pck_1": (62.95, 59.76, 56.64, 54.02, 51.5, 49.38, 47.24),
        "pck_5": (93.50, 92.79, 92.04, 91.35, 90.60, 89.97, 88.97),
    },
}

# AUC at 5, 10, 20 degrees, then mAP
POSES: dict[str, dict[str, tuple[float, ...]]] = {
    "yfcc": {
        "PDC-Net+ (D)": (34.76, 55.37, 72.55, 63.93, 73.81, 82.74),
        "PDC-Net+ (H)": (37.51, 58.08, 74.50, 67.35, 76.56, 84.56),
        "SIFT + ratio test": (24.09, 40.71, 58.14, 45.12, 55.81, 67.20),
        "SuperPoint + SuperGlue": (38.72, 59.13, 75.81, 67.75, 77.41, 85.70),
    },
    "scannet": {
        "PDC-Net+ (D)": (19.02, 36.90, 54.25, 42.93, 53.13, 63.95),
        "PDC-Net+ (H)": (20.25, 39.37, 57.13, 45.66, 56.67, 67.07),
    },
}


def eth3d(interval: int) -> dict[str, dict[str, float]]:
    """The paper's rows for one interval; none for intervals it does not have."""
    if interval not in _INTERVALS:
        return {}
    at = _INTERVALS.index(interval)
    return {method: {name: values[at] for name, values in row.items()} for method, row in ETH3D.items()}

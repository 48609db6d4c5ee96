"""A run as one self-contained HTML file."""

from pdc_sfm.report.write import write_report

__all__ = ["write_report"]

"""Finds the database images that show the same place as a query, ranked by the number of confident matches."""

from pdc_sfm.retrieval.run import RetrievalResult, retrieve
from pdc_sfm.retrieval.settings import RetrievalSettings

__all__ = ["RetrievalResult", "RetrievalSettings", "retrieve"]

"""Probabilistic dense matching (PDC-Net+) for structure-from-motion and visual localization."""

__version__ = "0.1.0"

_PUBLIC = ("match_images", "load_matcher", "Matcher", "PairSettings")


def __getattr__(name: str) -> object:
    """Import `pdc_sfm.match_images` and the other public names on first use, so that importing the package is fast."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'pdc_sfm' has no attribute '{name}'")
    from pdc_sfm import matcher

    return getattr(matcher, name)

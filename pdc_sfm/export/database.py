"""A COLMAP database of images, keypoints and raw matches, and the list of its pairs.

`colmap matches_importer --database_path database.db --match_list_path pairs.txt --match_type pairs` verifies the matches,
`colmap mapper` then reconstructs.
"""

from __future__ import annotations

from pdc_sfm.colmap.io.database_images import copy_unverified
from pdc_sfm.errors import FormatError
from pdc_sfm.export.formats import Export, register
from pdc_sfm.store.pair_lists import write_pairs


@register("database")
def write(export: Export) -> str:
    """database.db and pairs.txt."""
    source = export.source / "database.db"
    if not source.is_file():
        raise FormatError(f"{export.source} has no database.db with matches: reconstruct and triangulate write one")
    pairs, matches = copy_unverified(source, export.folder / "database.db")
    write_pairs(export.folder / "pairs.txt", pairs)
    return f"{matches:,} raw matches of {len(pairs)} pairs"

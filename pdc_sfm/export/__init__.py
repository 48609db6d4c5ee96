"""Maps in the formats of other programs, one file per format, by the name that `export --to` takes.

A format is a function of an `Export` that writes its files. A file of this folder that is named after the format it
registers is found by that name; other formats are known once their module is imported.
"""

from pdc_sfm.export.formats import Export, Format, find_format, format_names, register
from pdc_sfm.export.run import ExportedMap, export_map

__all__ = ["Export", "ExportedMap", "Format", "export_map", "find_format", "format_names", "register"]

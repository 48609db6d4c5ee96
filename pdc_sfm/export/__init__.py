"""Maps as other programs read them, one file a format, by the name that `export --to` takes.

A format is a function of an `Export` that writes its files. Every file of this folder that is named after the format it
registers is found by that name; a format from elsewhere counts from when its module is imported.
"""

from pdc_sfm.export.formats import Export, Format, find_format, format_names, register
from pdc_sfm.export.run import ExportedMap, export_map

__all__ = ["Export", "ExportedMap", "Format", "export_map", "find_format", "format_names", "register"]

"""Write the API reference from the docstrings: python docs/make_api.py [FOLDER]. What cannot be imported or read is an error.

Needs pdoc (`pip install -e ".[dev]"`) and no network. `make docs` writes it to outputs/api; open index.html there.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def make_api(folder: Path) -> int:
    """HTML of every module of the package. Returns how many pages there are."""
    os.environ["PDOC_ALLOW_EXEC"] = "1"  # libraries ask the system about itself when they are imported
    import pdoc

    with warnings.catch_warnings():
        warnings.filterwarnings("error", module=r"pdoc\.")  # a module that fails to import, a reference to nothing
        # of a named tuple's constructor pdoc does not find the module, and shows the words as they are
        warnings.filterwarnings("ignore", "Error parsing type annotation ForwardRef", module=r"pdoc\.")
        pdoc.render.configure(show_source=False)
        warnings.filterwarnings("ignore", "The module specification", module=r"pdoc\.")  # named twice
        names = [module.name for module in pkgutil.walk_packages([str(ROOT / "pdc_sfm")], "pdc_sfm.")]
        pdoc.pdoc("pdc_sfm", *names, output_directory=folder)  # by name: pdoc passes over modules that `__all__` lacks
    return sum(1 for _ in folder.rglob("*.html"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "outputs/api", help="where to write it")
    args = parser.parse_args()
    print(f"{make_api(args.folder)} pages in {args.folder}")


if __name__ == "__main__":
    main()

"""One word, one meaning: no two classes of one name, no name's privacy ignored by another module."""

import ast
from collections import defaultdict
from pathlib import Path

import pdc_sfm

ROOT = Path(pdc_sfm.__file__).parent
TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")}


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_alias_is_defined_twice():
    """`Pair` is what a pair of names is called, wherever it is."""
    places = defaultdict(list)
    for path, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
                places.update({(t.id): [*places[t.id], path] for t in node.targets if isinstance(t, ast.Name)})
    aliases = {name: paths for name, paths in places.items() if name[0].isupper() and not name.isupper()}
    assert aliases["Pair"] == ["store/pair_lists.py"]
    assert {name: paths for name, paths in aliases.items() if len(paths) > 1} == {}


def test_private_names_are_not_imported_by_other_modules():
    found = [
        f"{path}: {alias.name}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pdc_sfm")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert found == []


# Names that mean the same in every package that has them: settings, types, a run; a bounded cache; the work of a worker; ...
SHARED_FILE_NAMES = {
    *(
        "__init__",
        "cache",
        "calibration",
        "checks",
        "coarse",
        "database",
        "depth",
        "evidence",
        "extension",
        "flow",
        "http",
    ),
    *("localization", "matching", "nvm", "pairs", "panoramas", "patches", "paths", "photographs", "probability", "run"),
    *("scene", "settings", "types", "weights_file", "work"),
}


def test_a_file_name_has_one_meaning():
    """A verb may be named as what it calls; other names are used once, or listed above as meaning the same in both places."""
    places = defaultdict(list)
    for path in TREES:
        if not path.startswith("commands/"):
            places[Path(path).stem].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1 and name not in SHARED_FILE_NAMES} == {}

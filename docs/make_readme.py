"""Bring README's pictures and figures up to date with the present model, from what the commands wrote.

    make demo
    pdc-sfm evaluate scene --scene outputs/demo
    pdc-sfm evaluate homographies --images photos/
    python benchmarks/mapping.py --scenes scenes/
    python docs/make_readme.py

Written are docs/demo.jpg, docs/pair.jpg, docs/report.jpg (where chromium is installed), and the parts of README.md between
`<!-- NAME -->` and `<!-- end NAME -->`. A part whose results are not there stays as it is. No figure is typed by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 1456


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=Path("outputs/demo"), help="folder of the demo")
    parser.add_argument("--evaluate", type=Path, default=Path("outputs/evaluate"), help="folder of evaluations")
    parser.add_argument(
        "--mapping", type=Path, default=Path("outputs/benchmarks/mapping"), help="folder of the benchmark"
    )
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--pictures", type=Path, default=ROOT / "docs", help="folder of the pictures")
    args = parser.parse_args()
    record = json.loads((args.run / "run.json").read_text(encoding="utf-8"))
    text = fill(args.readme.read_text(encoding="utf-8"), parts(record, args.evaluate, args.mapping))
    args.readme.write_text(text, encoding="utf-8")
    print(args.readme)
    for name, draw in (("demo.jpg", demo_picture), ("pair.jpg", pair_sheet), ("report.jpg", report_picture)):
        picture = draw(args.run)
        if picture is not None:
            print(_write(args.pictures / name, picture))


# --- text -------------------------------------------------------------------------------------------------------------


def fill(readme: str, content: dict[str, str]) -> str:
    """README with the parts replaced; a part that README does not have is an error."""
    for name, text in content.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.S)
        readme, count = pattern.subn(lambda match, text=text: f"{match[1]}{text}\n{match[2]}", readme)
        if count != 1:
            raise SystemExit(f"README has {count} places for {name}, not one")
    return readme


def parts(record: dict[str, Any], evaluations: Path, mapping: Path) -> dict[str, str]:
    """The parts whose results are there."""
    from pdc_sfm.demo import format_table

    found = {"demo": _block(format_table(record["metrics"])), "times": times(record)}
    for name in ("scene", "homographies"):
        path = evaluations / name / "results.json"
        if path.is_file():
            found[name] = _block(_evaluation(name, json.loads(path.read_text(encoding="utf-8"))))
    if (mapping / "table.txt").is_file():
        found["mapping"] = _block((mapping / "table.txt").read_text(encoding="utf-8").rstrip())
    return found


def times(record: dict[str, Any]) -> str:
    """What ran and how long."""
    rows = ["| step of `make demo` | seconds | result |", "|---|---:|---|"]
    rows += [f"| {step['name']} | {step['seconds']:.0f} | {step['summary']} |" for step in record["steps"]]
    total, cores = sum(step["seconds"] for step in record["steps"]), record["machine"]["cores"]
    return "\n".join([*rows, f"| **all, on {cores} cores** | **{total:.0f}** | |"])


def _evaluation(name: str, results: dict[str, Any]) -> str:
    from pdc_sfm.evaluation.runs import homography_report, scene_pairs

    if name == "scene":
        return scene_pairs.text(results["groups"])
    tables = homography_report.dense_table(results["dense"]), homography_report.match_table(results["matches"])
    return "\n\n".join(tables)


def _block(text: str) -> str:
    return f"```text\n{text}\n```"


# --- pictures ---------------------------------------------------------------------------------------------------------


def demo_picture(run: Path) -> np.ndarray:
    """Some images, the model, and queries with their inliers."""
    from pdc_sfm.images import read_image
    from pdc_sfm.pictures import tile

    queries = json.loads((run / "localization.json").read_text(encoding="utf-8"))["queries"]
    best = {group: _best(queries, group) for group in ("day", "night")}
    database = _database(run)
    names = [database[0], database[len(database) // 2], *best.values()]
    captions = ["database", "database", *(f"query, {name}" for name in best.values())]
    above = _row([read_image(run / "images" / name) for name in names], captions)
    right = [_inliers(run, name, queries[name]) for name in best.values()]
    height = sum(picture.shape[0] for picture in right)
    left = _captioned(_model(run, (WIDTH - right[0].shape[1] - 12, height - 32)), "the model: points and cameras")
    below = tile([[left, tile([[picture] for picture in right], gap=0)]], gap=4)
    return tile([[above], [below]], gap=0)


def _database(run: Path) -> list[str]:
    return sorted(f"db/{path.name}" for path in (run / "images" / "db").iterdir())


def _best(queries: dict[str, Any], group: str) -> str:
    """The query of a group that lies nearest to the truth."""
    known = [name for name, query in queries.items() if query["group"] == group]
    return min(known, key=lambda name: queries[name]["metres"] if queries[name]["localized"] else np.inf)


def _row(images: list[np.ndarray], captions: list[str], gap: int = 4) -> np.ndarray:
    """Pictures of one height side by side, as wide as the sheet."""
    from pdc_sfm.images import resize_image
    from pdc_sfm.pictures import tile

    shapes = [image.shape[1] / image.shape[0] for image in images]
    height = int((WIDTH - gap * (len(images) + 1)) / sum(shapes))
    return tile([[resize_image(i, (int(height * s), height)) for i, s in zip(images, shapes)]], captions, gap)


def _captioned(picture: np.ndarray, caption: str) -> np.ndarray:
    from pdc_sfm.pictures import tile

    return tile([[picture]], [caption])


def _model(run: Path, size: tuple[int, int]) -> np.ndarray:
    from pdc_sfm.colmap.io.models import load_model, model_poses
    from pdc_sfm.colmap.io.pointcloud import model_points, remove_outliers
    from pdc_sfm.colmap.render import draw, overview

    model = load_model(run / "sfm")
    points, colors = model_points(model)
    keep = remove_outliers(points)
    poses = np.stack(list(model_poses(model).values()))
    view = overview(poses, points[keep], size, azimuth=35, elevation=30)
    return draw(points[keep], colors[keep], poses, view)


def _inliers(run: Path, name: str, query: dict[str, Any]) -> np.ndarray:
    from pdc_sfm.images import read_image
    from pdc_sfm.matches.select import subsample_spatially
    from pdc_sfm.matches.types import RawMatches
    from pdc_sfm.pair_picture import match_picture

    log = json.loads((run / "results.txt_logs.json").read_text(encoding="utf-8"))["queries"][name]
    shown = np.array(log["shown"], float).reshape(-1, 4)
    images = [read_image(run / "images" / which) for which in (name, log["best_image"])]
    few = subsample_spatially(RawMatches(shown[:, :2], shown[:, 2:], np.ones(len(shown))), 40, images[0].shape[1::-1])
    caption = (
        f"{name}: {log['inliers']:,} inliers, {query['metres']:.2f} m and {query['degrees']:.2f} deg from the truth"
    )
    return _captioned(match_picture(*images, few, 760), caption)


def pair_sheet(run: Path) -> np.ndarray:
    """What `pdc-sfm pair` draws of two database images."""
    from pdc_sfm.images import read_image
    from pdc_sfm.matcher import match_images
    from pdc_sfm.pair_picture import pair_picture

    images = [read_image(run / "images" / name) for name in _database(run)[1:3]]
    result = match_images(*images)
    return pair_picture(*images, result.matches, result.forward)


def report_picture(run: Path) -> np.ndarray | None:
    """The report on a laptop and on a phone; None without chromium."""
    from browser import Browser, find_chromium

    from pdc_sfm.images import read_image, resize_image

    program = find_chromium()
    if program is None or not (run / "report.html").is_file():
        return None
    pictures = []
    with tempfile.TemporaryDirectory() as folder:
        for width, height, dark in ((1180, 900, False), (415, 900, True)):
            with Browser(program, width, height, dark) as browser:
                browser.open(run / "report.html")
                browser.wait_for("document.getElementById('model-view').dataset.drawn === 'yes'")
                top = browser.ask("document.getElementById('model').offsetTop") - 60 if dark else 0
                browser.picture(Path(folder) / "view.png", (0, top, width, height))
            pictures.append(read_image(Path(folder) / "view.png"))
    sheet = np.concatenate([pictures[0], np.full((900, 8, 3), 128, np.uint8), pictures[1]], axis=1)
    return resize_image(sheet, (WIDTH, round(WIDTH * sheet.shape[0] / sheet.shape[1])))


def _write(path: Path, picture: np.ndarray) -> Path:
    import cv2

    cv2.imwrite(str(path), picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 84])
    return path


if __name__ == "__main__":
    main()

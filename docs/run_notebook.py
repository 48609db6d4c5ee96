"""Run a notebook from top to bottom and store its outputs in it; nothing but matplotlib is needed.

    python docs/run_notebook.py docs/match_two_images.ipynb

Printed text, the value of a cell's last line, and figures (as JPEG, so that the file stays small) become its outputs.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import io
import json
from pathlib import Path
from typing import Any

JPEG_QUALITY = 88
DPI = 72


def run_notebook(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the notebook with new outputs, the names its cells defined). An error in a cell is raised."""
    import matplotlib

    matplotlib.use("Agg")
    notebook, names = json.loads(path.read_text(encoding="utf-8")), {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, start=1):
        cell["execution_count"] = number
        cell["outputs"] = run_cell("".join(cell["source"]), names, f"{path.name}, cell {number}", number)
    return notebook, names


def run_cell(source: str, names: dict[str, Any], where: str, number: int) -> list[dict[str, Any]]:
    """Run one cell as Jupyter would: its outputs."""
    body, last = ast.parse(source, where), None
    if body.body and isinstance(body.body[-1], ast.Expr):
        last = ast.Expression(body.body.pop().value)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, where, "exec"), names)
        value = eval(compile(last, where, "eval"), names) if last is not None else None
    outputs = []
    if printed.getvalue():
        lines = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append({"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}})
    return outputs + [_shown(figure) for figure in _figures()]


def _figures() -> list[Any]:
    import matplotlib.pyplot as plt

    figures = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    return figures


def _shown(figure: Any) -> dict[str, Any]:
    stored = io.BytesIO()
    figure.savefig(stored, format="jpeg", dpi=DPI, bbox_inches="tight", pil_kwargs={"quality": JPEG_QUALITY})
    picture = base64.b64encode(stored.getvalue()).decode()
    return {"output_type": "display_data", "data": {"image/jpeg": picture, "text/plain": ["<Figure>"]}, "metadata": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", type=Path)
    path = parser.parse_args().notebook
    notebook, _ = run_notebook(path)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path} ({path.stat().st_size / 1e6:.2f} MB)")


if __name__ == "__main__":
    main()

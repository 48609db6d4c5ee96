"""Types by mypy. Modules in types_backlog.txt may still have errors; no other may, and the list only ever gets shorter.

python .ci/check_types.py            errors outside the list fail
python .ci/check_types.py --all      every error, also of listed modules
python .ci/check_types.py --write    write the list anew: after modules were moved, or some were mended
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BACKLOG = Path(__file__).with_name("types_backlog.txt")


def mypy_errors() -> dict[str, list[str]]:
    """Module (as a path) -> its errors."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--no-pretty", "--hide-error-context"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode not in (0, 1) or run.stderr:
        sys.exit(f"mypy could not run: {run.stderr or run.stdout}")
    errors: dict[str, list[str]] = {}
    for line in run.stdout.splitlines():
        path, _, message = line.partition(":")
        if ": error:" in message:
            errors.setdefault(Path(path).as_posix(), []).append(line)
    return errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="show every error")
    parser.add_argument("--write", action="store_true", help="write the list anew")
    args = parser.parse_args()
    errors = mypy_errors()
    if args.write:
        BACKLOG.write_text("".join(f"{path}\n" for path in sorted(errors)), encoding="utf-8")
    listed = set(BACKLOG.read_text(encoding="utf-8").split())
    new = [line for path, lines in errors.items() for line in lines if path not in listed]
    print(
        "\n".join([line for lines in errors.values() for line in lines] if args.all else new) or "types: no new errors"
    )
    if clean := sorted(listed - set(errors)):
        print(f"without errors now, take out of {BACKLOG.name}: {' '.join(clean)}")
    print(
        f"{sum(map(len, errors.values())) - len(new)} errors in {len(listed & set(errors))} modules of {BACKLOG.name}"
    )
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())

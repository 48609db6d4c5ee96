"""All benchmarks, one table: benchmarks/RESULTS.md.

  make bench                                    all steps, about 25 minutes on two quiet cores
  python benchmarks/run.py network others       some steps; their rows are printed, RESULTS.md stays as it is
  python benchmarks/run.py mapping --update     the same, and RESULTS.md anew with the other steps as last measured here
  python benchmarks/run.py --quick              to see that everything runs; writes outputs/benchmarks/RESULTS.md

Each step is a process of its own. A step that fails, or cannot be taken here, says so in the table. Before each step the
machine is watched for a second: what others do with its cores meanwhile distorts every figure, and the table says it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from data import ABSENT, DATA, ROOT
from rows import Row, Skip
from steps import SCRIPTS, STEPS, WORK, Context

from pdc_sfm.files import write_text


def busy_share(pause: float = 1.0) -> float:
    """The share of all cores that other processes use while this one sleeps."""

    def ticks() -> tuple[int, int]:
        values = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(values), values[3] + values[4]  # all, idle and waiting for disks

    (all0, idle0), _, (all1, idle1) = ticks(), time.sleep(pause), ticks()
    return 1 - (idle1 - idle0) / max(1, all1 - all0)


@dataclasses.dataclass
class Outcome:
    """What a step gave."""

    name: str
    rows: list[Row]
    text: str = ""  # what a script printed
    seconds: float = 0.0
    busy: float = 0.0  # share of the cores that others used just before
    when: str = ""  # date and commit


def run_step(name: str, context: Context, limit: float) -> Outcome:
    """A step or script in a process of its own."""
    busy, start = busy_share(), time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": str(context.threads)}
    log = WORK / "log" / f"{name}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open(log, "w") as output:
        answer = Path(folder) / "rows.json"
        if name in STEPS:
            command = [__file__, "--step", name, "--answer", str(answer), "--threads", str(context.threads)]
            command += ["--quick"] if context.quick else []
        else:
            data, work = (
                os.path.relpath(folder, ROOT) for folder in (DATA, WORK)
            )  # no path of this machine is printed
            places = {"data": data, "work": work, "threads": context.threads}
            command = [str(ROOT / "benchmarks" / f"{name}.py"), *(word.format(**places) for word in SCRIPTS[name])]
        try:
            done = subprocess.run(
                [sys.executable, *command], stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=ROOT, timeout=limit
            )  # fmt: skip
            problem = None if done.returncode == 0 else f"failed: {last_line(log)}"
        except subprocess.TimeoutExpired:
            problem = f"stopped after {limit:.0f} s: the time of the whole run was over"
        rows = [Row(**row) for row in json.loads(answer.read_text())] if answer.is_file() else []
    if problem:
        rows.append(Row(name, "the whole step", None, problem.split(":")[0], note=problem.partition(": ")[2]))
    text = log.read_text(errors="replace") if name in SCRIPTS and not problem else ""
    return Outcome(name, rows, text, time.monotonic() - start, busy)


def stored(name: str) -> Path:
    """Where the last outcome of a step is kept."""
    return WORK / "outcomes" / f"{name}.json"


def latest(name: str) -> Outcome | None:
    """The last outcome of a step on this machine."""
    if not stored(name).is_file():
        return None
    kept = json.loads(stored(name).read_text())
    return Outcome(**{**kept, "rows": [Row(**row) for row in kept["rows"]]})


def when(conditions: dict[str, str]) -> str:
    return f"{conditions['date']}, {conditions['versions']}"


def last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing was printed"


def take_step(name: str, context: Context, answer: Path) -> None:
    """In the step's own process."""
    try:
        rows = STEPS[name](context)
    except Skip as reason:
        rows = [Row(name, "the whole step", None, "skipped", note=str(reason))]
    answer.write_text(json.dumps([dataclasses.asdict(row) for row in rows]))


def run_all(names: list[str], context: Context, minutes: float, when: str) -> list[Outcome]:
    """The steps one after the other, with a line for each, until the time is over."""
    outcomes, end = [], time.monotonic() + 60 * minutes
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name} ...", end=" ", flush=True)
        left = end - time.monotonic()
        if left < 5:
            outcome = Outcome(
                name, [Row(name, "the whole step", None, "skipped", note=f"{minutes:g} minutes were over")]
            )
        elif name in SCRIPTS and any("{data}" in word for word in SCRIPTS[name]) and not DATA.is_dir():
            outcome = Outcome(name, [Row(name, "the whole step", None, "skipped", note=ABSENT)])
        else:
            outcome = run_step(name, context, left)
        outcome.when = when
        outcomes.append(outcome)
        write_text(stored(name), json.dumps(dataclasses.asdict(outcome)))
        trouble = "".join(f"; {row.ours}: {row.note}" for row in outcome.rows if row.what == "the whole step")
        others = f", others used {outcome.busy:.0%} of the cores" if outcome.busy > 0.1 else ""
        print(f"{outcome.seconds:.0f} s, {len(outcome.rows)} rows{others}{trouble}", flush=True)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", help=f"of {' '.join([*STEPS, *SCRIPTS])}")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--minutes", type=float, default=30, help="steps that would begin later are left out")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--update", action="store_true", help="write RESULTS.md after some steps too")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    context = Context(args.threads, args.quick)
    if args.step:
        return take_step(args.step, context, args.answer)
    unknown = [name for name in args.steps if name not in STEPS and name not in SCRIPTS]
    if unknown:
        parser.error(f"unknown step {unknown[0]}")
    missing = [name for name in (*STEPS, *SCRIPTS) if args.update and name not in args.steps and not latest(name)]
    if missing:
        parser.error(
            f"--update: {', '.join(missing)} were never measured here and would leave RESULTS.md: run all steps"
        )
    from results_page import machine, page, table

    conditions, head = machine(args.threads), WORK / "conditions.json"
    outcomes = run_all(args.steps or [*STEPS, *SCRIPTS], context, args.minutes, when(conditions))
    if args.steps:
        print("\n".join(table([row for outcome in outcomes for row in outcome.rows])))
        if not args.update:
            return
        outcomes = [outcome for name in (*STEPS, *SCRIPTS) if (outcome := latest(name))]
        conditions = json.loads(head.read_text()) if head.is_file() else conditions  # of the whole run
    else:
        write_text(head, json.dumps(conditions))
    path = (WORK if args.quick else ROOT / "benchmarks") / "RESULTS.md"
    write_text(path, page(conditions, outcomes, args.quick, when(conditions)))
    print(path)


if __name__ == "__main__":
    main()

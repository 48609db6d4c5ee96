"""From the outcomes of all steps to the page: the machine and the conditions, one table, what scripts printed."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rows import Row
from steps import NOT_HERE

if TYPE_CHECKING:
    from run import Outcome

QUIET = 0.1  # share of the cores that others may use


def machine(threads: int) -> dict[str, str]:
    """What the figures depend on."""
    import torch
    from network import gemm_rate

    text = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.+)", text)
    megabytes = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) / 1024
    load = os.getloadavg()
    torch.set_num_threads(1)
    one = gemm_rate(5)
    torch.set_num_threads(threads)
    several = gemm_rate(5)
    return {
        "processor": f"{model[1] if model else 'unknown'}, {os.cpu_count()} cores, {megabytes / 1024:.0f} GB",
        "threads": str(threads),
        "GEMM, float32": f"{several[0]:.0f} GFLOP/s (best {several[1]:.0f}); one thread {one[0]:.0f} (best {one[1]:.0f})",
        "load average before": " ".join(f"{x:.2f}" for x in load),
        "versions": f"torch {torch.__version__}, commit {commit()}",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def commit() -> str:
    """The commit that was measured, marked if files differ from it."""
    folder = Path(__file__).parent
    words = ["git", "describe", "--always", "--dirty=, changed", "--exclude=*"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    return done.stdout.strip() or "unknown"


def table(rows: Sequence[Row]) -> list[str]:
    lines = ["| ratio | part | what | ours | against | remarks |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = (row.ratio_text, row.part, row.what, row.ours, row.against, row.note)
        lines.append("| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |")
    return lines


def page(conditions: dict[str, str], outcomes: Sequence[Outcome], quick: bool, when: str = "") -> str:
    """`when` is of the whole run; steps that were measured at another time say so."""
    rows = [row for outcome in outcomes for row in outcome.rows]
    busiest = max(outcomes, key=lambda outcome: outcome.busy)
    total = sum(outcome.seconds for outcome in outcomes) / 60
    lines = ["# Benchmarks", ""]
    if quick:
        lines += ["**A quick run, to see that everything runs: these figures mean nothing.**", ""]
    if busiest.busy > QUIET:
        noise = f"others used up to {busiest.busy:.0%} of the cores (before step {busiest.name})"
        lines += [f"**Measured on a loaded machine: {noise}. Seconds are too long and ratios uncertain.**", ""]
    lines += [f"Written by `make bench` in {total:.0f} minutes.", ""]
    lines += [f"- {name}: {value}" for name, value in conditions.items()]
    lines += [f"- measured at another time: {o.name} ({o.when})" for o in outcomes if o.when != when]
    lines += [f"- others' use of the cores, before each step: at most {busiest.busy:.0%}", ""]
    lines += [
        "Ratios come first: `3.0 x` means that ours is three times better than what it is compared with, and **loses** that",
        "it is worse. Per cent are shares, slopes are exponents: doubling the size costs 2^slope.",
        "",
        *verdict(rows),
        "",
        *table(rows),
        "",
    ]
    printed = [outcome for outcome in outcomes if outcome.text]
    if printed:
        lines += ["## Printed by the other benchmarks", ""]
    for outcome in printed:
        kept = [line for line in clean(outcome.text) if line.strip()]
        lines += [f"`benchmarks/{outcome.name}.py`, {outcome.seconds:.0f} s", "", "```", *kept, "```", ""]
    return "\n".join([*lines, NOT_HERE + ".", ""])


def verdict(rows: Sequence[Row]) -> list[str]:
    """Where ours loses, and what is missing, in words before the table."""
    lost = [row for row in rows if row.loses]
    missing = [row for row in rows if row.ratio is None and row.ours.startswith(("failed", "skipped", "stopped"))]
    lines = [f"Ours loses in {len(lost)} of {sum(row.ratio is not None for row in rows)} rows" + (":" if lost else ".")]
    lines += [f"- {row.what}: {row.ours}, {row.against}" for row in lost]
    missed = [row for row in rows if "missed" in row.against]
    if missed:
        lines += ["", "Aims that were missed:"]
        lines += [f"- {row.what}: {row.ratio_text}, aim {row.against.replace('**missed**: ', '')}" for row in missed]
    if missing:
        lines += ["", "Not measured:"]
        lines += [f"- {row.part}, {row.what}: {row.ours}, {row.note}" for row in missing]
    return lines


def clean(text: str) -> list[str]:
    """Without what progress bars wrote over."""
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.splitlines()]
    return [line for line in lines if not re.search(r"\d+%\|", line)]

"""How long the localization server takes for a photograph, compared with `pdc-sfm localize --map`.

    python benchmarks/serve.py --map outputs/demo --images queries/ [--clients 1 4] [key=value ...]

A server is started and asked by so many clients at once, each picture `--rounds` times after a first round that fills its
memory. Printed are the median and 95th percentile of the seconds until an answer, those of the processor's seconds of an answer
(of several clients the mean: they wait for each other), and the seconds by stage. On a machine that does other things too, the
processor's seconds are what counts. Then the command localizes one picture, from its start to its end.
"""

from __future__ import annotations

import argparse
import collections
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pdc_sfm.client import Client, Localization
from pdc_sfm.images import list_images

COMMAND = [sys.executable, "-m", "pdc_sfm.cli"]
ADDRESS = "the map answers at "
PATIENCE = 3600  # seconds: a machine that does other things is slow, not wrong


def cpu_seconds(pid: int) -> float:
    """Of a process so far, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100  # utime, stime in clock ticks (proc(5))


class Asked(NamedTuple):
    """An answer, the seconds until it was there, and those of the server's processor meanwhile."""

    answer: Localization
    seconds: float
    cpu: float


def ask_all(url: str, pid: int, pictures: list[Path], clients: int) -> list[Asked]:
    """Each picture once, by so many clients."""
    todo: collections.deque[Path] = collections.deque(pictures)
    found: list[Asked] = []

    def client() -> None:
        while todo:
            try:
                path = todo.popleft()
            except IndexError:
                return
            begun, before = time.perf_counter(), cpu_seconds(pid)
            answer = Client(url, timeout=PATIENCE).localize(path)
            found.append(Asked(answer, time.perf_counter() - begun, cpu_seconds(pid) - before))

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--map", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True, help="folder of queries")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("settings", nargs="*", help="key=value, of pdc-sfm localize")
    args = parser.parse_args()
    pictures = [args.images / name for name in list_images(args.images)]
    with tempfile.TemporaryDirectory() as folder:
        served(args, pictures, Path(folder))
        commanded(args, pictures[0], Path(folder))


def served(args: argparse.Namespace, pictures: list[Path], folder: Path) -> None:
    words = ["serve", "--map", str(args.map), "--port", "0", "--state", str(folder / "state"), "--top", str(args.top)]
    patient = f"serve.answer_seconds={PATIENCE}"
    server = subprocess.Popen([*COMMAND, *words, patient, *args.settings], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().removeprefix(ADDRESS).split(" ")[0]
        first = ask_all(url, server.pid, pictures, 1)
        print(f"first round: median {np.median([one.seconds for one in first]):.2f} s", flush=True)
        print(
            f"{'clients':>7} {'answers':>7} {'median s':>9} {'95 % s':>7} {'CPU s':>6} {'95 %':>6}  by stage (medians, s)"
        )
        for clients in args.clients:
            before = cpu_seconds(server.pid)
            found = ask_all(url, server.pid, pictures * args.rounds, clients)
            mean = (cpu_seconds(server.pid) - before) / len(found)
            cpu = [one.cpu for one in found] if clients == 1 else [mean]
            waits, stages = [one.seconds for one in found], found[0].answer.seconds
            usual = {key: np.median([one.answer.seconds.get(key, 0.0) for one in found]) for key in stages}
            row = f"{clients:>7} {len(found):>7} {np.median(waits):>9.2f} {np.percentile(waits, 95):>7.2f}"
            row += f" {np.median(cpu):>6.2f} {np.percentile(cpu, 95):>6.2f}  "
            print(row + ", ".join(f"{key} {value:.2f}" for key, value in usual.items()), flush=True)
        print(f"{sum(one.answer.localized for one in first)} of {len(first)} localized")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(120)


def commanded(args: argparse.Namespace, picture: Path, folder: Path) -> None:
    (folder / "one").mkdir()
    (folder / "one" / picture.name).symlink_to(picture.resolve())
    words = ["localize", "--map", str(args.map), "--images", str(folder / "one"), "--output", str(folder / "out")]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*COMMAND, *words, "--top", str(args.top), *args.settings], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"pdc-sfm localize --map, one picture: {time.perf_counter() - begun:.2f} s, CPU {cpu:.2f} s")


if __name__ == "__main__":
    main()

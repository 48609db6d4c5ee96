"""How long a map that answers takes for a photograph, beside `pdc-sfm localize --map` for the same one.

    python benchmarks/serve.py --map outputs/demo --images queries/ [--clients 1 4] [key=value ...]

A server is started and asked by so many clients at once, each picture `--rounds` times after a first round that fills its
memory. Printed are the median and 95th percentile of the seconds until an answer, the processor's seconds of an answer, and
the seconds by stage. Then the command localizes one picture at a time, from its start to its end.
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

import numpy as np

from pdc_sfm.client import Client, Localization
from pdc_sfm.images import list_images

COMMAND = [sys.executable, "-m", "pdc_sfm.cli"]
ADDRESS = "the map answers at "


def cpu_seconds(pid: int) -> float:
    """Of a process so far, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100  # utime, stime in clock ticks (proc(5))


def ask_all(url: str, pictures: list[Path], clients: int) -> list[tuple[float, Localization]]:
    """Each picture once, by so many clients: seconds until its answer, and that."""
    todo, found = collections.deque(pictures), []

    def client() -> None:
        while todo:
            try:
                path = todo.popleft()
            except IndexError:
                return
            begun = time.perf_counter()
            answer = Client(url, timeout=600).localize(path)
            found.append((time.perf_counter() - begun, answer))

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
    server = subprocess.Popen([*COMMAND, *words, *args.settings], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().removeprefix(ADDRESS).split(" ")[0]
        first = ask_all(url, pictures, 1)
        print(f"first round: median {np.median([seconds for seconds, _ in first]):.2f} s")
        print(f"{'clients':>7} {'answers':>7} {'median s':>9} {'95 % s':>7} {'CPU s':>6}  by stage (medians, s)")
        for clients in args.clients:
            before = cpu_seconds(server.pid)
            found = ask_all(url, pictures * args.rounds, clients)
            cpu = (cpu_seconds(server.pid) - before) / len(found)
            waits = [seconds for seconds, _ in found]
            stages = {
                key: np.median([answer.seconds.get(key, 0.0) for _, answer in found]) for key in found[0][1].seconds
            }
            said = ", ".join(f"{key} {value:.2f}" for key, value in stages.items())
            tail = np.percentile(waits, 95)
            print(f"{clients:>7} {len(found):>7} {np.median(waits):>9.2f} {tail:>7.2f} {cpu:>6.2f}  {said}")
        print(f"{sum(answer.localized for _, answer in first)} of {len(first)} localized")
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

"""How long the built-in scene takes: pictures of the default size, on one core and on two.

python benchmarks/scene.py --images 30 --workers 2
"""

from __future__ import annotations

import argparse
import resource
import time

from pdc_sfm.scenes import SceneSettings, take_pictures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=30)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    queries = args.images // 4
    settings = SceneSettings(database=args.images - 2 * queries, day_queries=queries, night_queries=queries)
    start = time.perf_counter()
    count = sum(1 for _ in take_pictures(settings, args.workers))
    wall = time.perf_counter() - start
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(usage.ru_utime + usage.ru_stime for usage in used)
    print(
        f"{count} images of {settings.width}x{settings.height} on {args.workers} workers: {wall:.1f} s, "
        f"processor time {processor:.1f} s"
    )


if __name__ == "__main__":
    main()

"""The steps of `benchmarks/run.py`: each measures one thing and returns rows of the table."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from data import ABSENT, DATA, ROOT
from rows import Row, Skip, seconds

WORK = ROOT / "outputs/benchmarks"
LIMIT = "less than 10 %"
COMPUTED = "computed from the times of encoding and decoding"
LIST = 20  # pairs of each image in a list, as hloc's covisibility lists have


@dataclass(frozen=True)
class Context:
    """How much is measured."""

    threads: int
    quick: bool = False  # to see that everything runs: minutes on a busy machine, figures of no value


def photographs() -> Path:
    """A folder of real photographs, or rendered ones where those are absent."""
    real = DATA / "scenes/fountain-P11/images"
    if real.is_dir():
        return real
    from pdc_sfm.scenes import SceneSettings, write_scene

    return write_scene(WORK / "others/scene", SceneSettings(database=8, day_queries=2, night_queries=1)) / "images"


def network(name: str, title: str) -> Callable[[Context], list[Row]]:
    """Parts against the GEMM rate, and a pair against the published scheme."""

    def step(context: Context) -> list[Row]:
        import network as bench

        size, repeats = ((256, 256), 1) if context.quick else ((480, 640), 3)
        found = bench.measure(name, *size, repeats)
        part, place = f"network, {title}", f"{size[1]}x{size[0]}"
        rows = []
        for one in (*found.encode, *found.decode):
            share = one.gflop / one.median / found.gemm
            texts = f"{one.gflop:.2g} GFLOP in {seconds(one.median)}", f"GEMM {found.gemm:.0f} GFLOP/s"
            note = "above the GEMM rate: too short to time here, or the load changed in between" if share > 1 else ""
            rows.append(Row(part, f"rate of: {one.name}; {place}", share, *texts, note, "share"))
        return rows + _schemes(part, place, found)

    return step


def _schemes(part: str, place: str, found) -> list[Row]:
    """A pair in both directions by several schemes, from the same run."""
    pair = {name: statistics.median(values) for name, values in found.pair.items()}
    encode, decode = found.encode[-1].median, found.decode[-1].median
    once, there = pair["encoding both images once"], pair["codes already there"]
    rows, published = [], pair.get("published scheme, written plainly")
    if published:
        against = f"published scheme, written plainly: {seconds(published)}"
        rows.append(Row(part, f"a pair, both directions; {place}", published / once, seconds(once), against))
        what = f"a pair whose codes are there, both directions; {place}"
        rows.append(Row(part, what, published / there, seconds(there), against))
    apart = 2 * (2 * encode + decode)
    what = f"both directions of a pair, its codes used twice; {place}"
    rows.append(Row(part, what, apart / once, seconds(once), f"two runs of one direction: {seconds(apart)}", COMPUTED))
    in_list = 2 / LIST * encode + there
    what = f"a pair of a list, each image in {LIST} pairs and encoded once; {place}"
    against = f"encoding both images of every pair: {seconds(once)}"
    rows.append(
        Row(
            part,
            what,
            once / in_list,
            seconds(in_list),
            against,
            f"{COMPUTED}; a code is {found.code_bytes / 1e6:.0f} MB",
        )
    )
    return rows


def pair_list(context: Context) -> list[Row]:
    """The engine over all pairs of 12 images, and the order of a real list."""
    import matching

    side = 64 if context.quick else 480
    taken = matching.engine(None, side)
    what = f"all 66 pairs of 12 images, encoded once; smaller side {side}"
    once, each = taken["engine"], taken["encode per pair"]
    against = f"encoding per pair: {seconds(each)}"
    rows = [Row("pair list", what, each / once, seconds(once), against, "built-in model, the whole loop")]
    path = DATA / "aachen" / matching.LISTS["hloc covisibility, pairs-db-covis20"]
    if not path.is_file():
        return [*rows, Row("pair list", "order of a real list", None, "skipped", note=ABSENT)]
    names, pairs = matching.read_list(path)
    # the same cache on both sides, so that the ratio is that of the order alone; the list's own order is a weaker rival
    ours = matching.belady(pairs[matching.order_pairs(pairs, 400)], 400) / len(names)
    by_name = matching.belady(matching.sorted_by_name(names, pairs), 400) / len(names)
    as_listed = [cache(pairs, 400) / len(names) for cache in (matching.belady, matching.lru)]
    what = f"encodings per image of {path.stem} ({len(names)} images, {len(pairs)} pairs) with room for 400 codes"
    texts = f"{ours:.2f}", f"sorted by name, the same cache: {by_name:.2f}"
    note = f"as listed: {as_listed[0]:.2f}; as listed, least recently used leaves: {as_listed[1]:.2f}"
    return [*rows, Row("pair list", what, by_name / ours, *texts, note)]


def million(context: Context) -> list[Row]:
    if context.quick:
        raise Skip("not in a quick run")
    import matching

    taken, encodings = matching.order_a_million()
    note = f"{encodings:.2f} encodings per image with room for 400 codes"
    return [
        Row("pair list", "ordering a million pairs of 90,000 images", None, f"{taken:.0f} s of one core", note=note)
    ]


def aggregation(context: Context) -> list[Row]:
    import matching

    count = 36_000 if context.quick else 1_000_000
    ours, theirs, same = matching.aggregation(count)
    note = "the same matches" if same else "NOT the same matches"
    what = f"aggregating {count:,} matches to keypoints by hloc's rule"
    return [Row("aggregation", what, theirs / ours, seconds(ours), f"plain dictionaries: {seconds(theirs)}", note)]


def retrieval(context: Context) -> list[Row]:
    """Cascade against exhaustive; of the latter a sample is timed."""
    import retrieval as bench

    from pdc_sfm.retrieval import RetrievalSettings

    if context.quick:
        found = bench.bench(WORK / "retrieval", [20], 1, 2, 1, context.threads, RetrievalSettings(best=2), top=2)
    else:
        found = bench.bench(WORK / "retrieval", [200, 1000], 8, 8, 1, context.threads, RetrievalSettings())
    rows = []
    for one in found:
        aim = bench.AIMS.get(one.size, 0)
        note = f"core seconds; the same first five for {one.same:.0f} % of the queries; exhaustive was {one.checked}"
        for what, taken in (("cascade", one.cascade), ("cascade, codes kept of an earlier run", one.kept)):
            title, ratio = f"{what}: {one.queries} queries in {one.size} images", one.exhaustive / taken
            against = f"exhaustive: {seconds(one.exhaustive)}" + (f"; **missed**: {aim} x" if ratio < aim else "")
            rows.append(Row("retrieval", title, ratio, seconds(taken), against, note))
    return rows


def growth(kind: str) -> Callable[[Context], list[Row]]:
    def step(context: Context) -> list[Row]:
        import growth as bench

        return bench.rows_of(kind, context.threads, context.quick)

    return step


def others(context: Context) -> list[Row]:
    import others as bench

    count, methods = (2, ("ours", "SIFT")) if context.quick else (6, tuple(bench.METHODS))
    rows, _ = bench.bench(DATA / "scenes", WORK / "others", count, context.threads, methods)
    if not (DATA / "scenes/fountain-P11").is_dir():
        rows.append(Row(bench.PART, "photographs", None, "skipped", note=f"{ABSENT}; rendered pairs only"))
    note = "their weights (ONNX) are downloads that are not on this machine"
    return [*rows, Row(bench.PART, "pycolmap's ALIKED + LightGlue, LoMa", None, "skipped", note=note)]


def match_time(name: str, title: str) -> Callable[[Context], list[Row]]:
    """The share of a whole run outside the network."""

    def step(context: Context) -> list[Row]:
        import match_time as bench

        count = 3 if context.quick else (11 if name == "builtin" else 4)
        images = photographs()
        runs = 3 if name == "builtin" and not context.quick else 1
        found = bench.match_time(images, count, name, [], runs)
        pairs = count * (count - 1) // 2
        outside = {k: v for k, v in found.items() if k not in bench.NETWORK and not k.startswith("loading")}
        parts = sorted(outside.items(), key=lambda item: -item[1])
        shown = "; ".join(f"{key} {1000 * value / pairs:.1f} ms" for key, value in parts)
        total = sum(value for key, value in found.items() if not key.startswith("loading")) / pairs
        what = f"time of a whole run outside the network, {title}"
        texts = f"of {seconds(total)} a pair: {shown}", LIMIT
        loading = seconds(found["loading libraries and weights"])
        note = f"one thread, {count} images, {pairs / count:.1f} pairs an image (with fewer the share is larger), "
        note += f"mean of {runs} runs; " if runs > 1 else "one run; "
        note += f"loading, once: {loading}"
        if name != "builtin":
            note += (
                "; random weights: the network's time is true, its matches are not typical (see the built-in's outside)"
            )
        share, rest = bench.outside_share(found), bench.outside_share(found, bench.ALIGNMENT)
        rows = [Row("match run", what, share, *texts, note, kind="share")]
        if bench.ALIGNMENT in found:
            what += f", had it no {bench.ALIGNMENT} (dense.subpixel=false)"
            rows.append(Row("match run", what, rest, "", LIMIT, "computed from the same run", "share"))
        return [replace(row, against=f"**missed**: {LIMIT}") if row.ratio >= 0.1 else row for row in rows]

    return step


STEPS: dict[str, Callable[[Context], list[Row]]] = {
    "network": network("compact", "built-in architecture"),
    "network_plus": network("pdcnet_plus", "PDC-Net+"),
    "match_time": match_time("builtin", "built-in model"),
    "match_time_plus": match_time("pdcnet_plus", "PDC-Net+ size, random weights"),
    "pair_list": pair_list,
    "aggregation": aggregation,
    "others": others,
    "growth_size": growth("size"),
    "growth_images": growth("images"),
    "growth_pairs": growth("pairs"),
    "retrieval": retrieval,
    "million": million,
}
# scripts whose own tables stand below: name -> arguments
SCRIPTS: dict[str, list[str]] = {
    "training_pairs": ["--photos", "{data}/photos", "--objects", "{data}/objects", "--pairs", "50"],
    "scene": ["--images", "8", "--workers", "{threads}"],
    "strategies": ["--images", "{data}/photos", "--held-out", "--count", "3", "--threads", "{threads}", "--kinds", "easy",
                   "turned 45", "turned 90", "scale 2.5", "scale 1/2.5", "strong persp.",
                   "--strategies", "D", "H", "MS", "search"],
    "tracks": ["--scene", "{work}/others/scene", "--work", "{work}/tracks"],
    "mapping": ["--scenes", "{data}/scenes", "--work", "{work}/mapping", "--skip-leave-one-out"],
}  # fmt: skip
NOT_HERE = "benchmarks/aachen_scene.py (localization of a rendered scene, tens of minutes) is run by itself"

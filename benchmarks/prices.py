"""Compare virtual with real time, step by step of every structure, in the default profile.

In the clock: one step of one structure, processor time.

Every structure that a system is made of works at sizes of 2^6 to 2^22 tuples, by 1 to 1,024 tuples
at a time, subwindows by up to 65,536 (`scenarios.calibration.structure_work`). Most of these sizes
and batches are not those that prices were fitted to. What its steps counted is priced, and compared
with processor time. The profile was measured on a machine that it names (`joinsim calibrate
--no-live`); on another kind, give one that was measured there. Machines that others use too are not
always as fast: what they disturbed is measured again, and before every structure a read in the
nearest cache is timed, and processor time is divided by what such reads take over the profile's
(printed).

A figure is the share of measurements where virtual over real time is within 0.75 to 1.33; the note
has the same for prices of units, for the structures' prices, and for what one pass over all of it
gave before (*measured before*: how steady the machine is), each with its least and its greatest
ratio. *In proportion* is the same share after all ratios were divided by their median,
which the note has: another machine, or a busy one, takes longer for all that work, and a comparison
in virtual time depends on proportions alone. Further figures are about structures that could take
each other's place: of all pairs that differ by a tenth or more in real time, how many are in that
order in virtual time. The last ones are what prices of units turned round.

A call with a merge is compared by itself; in the order of alternatives it counts with the others.

Run: ``python -m benchmarks.prices [--profile FILE] [--passes 2] [--quick] [--json]``
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import median

from actors.hosting.process_memory import keep_freed_memory
from benchmarks.measure import Result, command_line, report
from joins.indexes.panjoin.subwindow import STRUCTURES
from joins.indexes.structures import SEGMENTS, WINDOW_INDEXES
from joins.window_join.window_join_spec import INDEXES, SHARED
from joins.work import Step
from netsim.cost import CostProfile, load_profile
from scenarios.calibration.memory_speed import chain, wait_ps
from scenarios.calibration.structure_work import Sample, measure_all

_POWERS = (6, 7, 9, 10, 11, 13, 15, 16, 18, 20, 22)
_SIZES = tuple(sorted([3 << 17, 3 << 19, *(1 << bits for bits in _POWERS)]))
_QUICK = (1 << 7, 1 << 11, 1 << 16, 3 << 17)
_BATCHES = (1, 8, 32, 256, 1024, 4096, 65_536)
_MATCHES = (16,)
_LEAST, _MOST = 0.75, 1.33
_DIFFERENT = 1.1
_ALTERNATIVES = {
    "window indexes": tuple(WINDOW_INDEXES),
    "segments": tuple(SEGMENTS),
    "subwindows": STRUCTURES,
    "window joins": tuple(f"ibwj_{index}" for index in INDEXES),
    "window joins that threads can share": tuple(f"ibwj_shared_{index}" for index in SHARED),
}
_INVERSIONS = (
    ("ibwj_pim_tree.join", "ibwj_b_plus_tree.join", 1 << 16),
    ("css_hash.seal", "po_join.seal", 1 << 16),
    ("css_hash.seal", "css_bits.seal", 1 << 16),
    ("hash.insert", "b_plus_tree.insert", 1 << 16),
    ("ibwj_shared_bw_tree.join", "ibwj_shared_pim_tree.join", 1 << 16),
)
"""Steps that prices of units set against each other the wrong way, or too far; sizes."""

Predict = Callable[[Sample], float]
"""The virtual time of a call, in seconds."""


def main() -> None:
    """Measure, compare and print."""
    parser = command_line(__doc__)
    parser.add_argument("--profile", type=Path, default="default", help="the profile to compare")
    parser.add_argument("--passes", type=int, default=2, help="measure each N times (2)")
    parser.add_argument("--quick", action="store_true", help="at four sizes only")
    options = parser.parse_args()
    keep_freed_memory()
    profile = load_profile(options.profile)
    of_units = replace(profile, structures={})
    prices: dict[str, Predict] = {
        "units": lambda one: of_units.work_ns(one.work) / 1e9 / one.calls,
        "structures": lambda one: (
            profile.structures[one.step.name].work_ps(one.step, one.work, one.calls)
            / (1e12 * one.calls)
        ),
    }
    sizes = _QUICK if options.quick else _SIZES
    first, _ = measured(profile, sizes, passes=1)
    before = {sample.case: sample.call_seconds for sample in first}
    samples, paces = measured(profile, sizes, options.passes)
    # Merges are rare: some come in one pass and not in another.
    samples = [sample for sample in samples if sample.case in before]
    prices["measured before"] = lambda one: before[one.case]
    results = [
        Result.of("a read in the nearest cache over the profile's", paces, unit="times"),
        *within(prices, samples),
        in_proportion("all", prices, samples),
        in_proportion(
            "from 2^10 tuples on", prices, [s for s in samples if s.step.size >= 1 << 10]
        ),
        *ordered(prices, samples),
        *turned_round(prices, samples),
    ]
    report("virtual over real time, within 0.75 to 1.33", results)


def measured(
    profile: CostProfile, sizes: Sequence[int], passes: int
) -> tuple[list[Sample], list[float]]:
    """Return samples of all structures, and the paces of the machine meanwhile.

    The samples' seconds are divided by the median of the paces.
    """
    paces: list[float] = []
    samples = measure_all(
        sizes, _BATCHES, _MATCHES, passes=passes, note=lambda _: paces.append(pace(profile))
    )
    usual_pace = median(paces)
    calls = [one for one in samples if not one.is_part]
    return [replace(one, seconds=one.seconds / usual_pace) for one in calls], paces


def pace(profile: CostProfile) -> float:
    """Return what a read in the nearest cache takes now over what it took for *profile*."""
    memory = profile.memory
    return wait_ps(chain(memory.sizes[0])) / memory.wait_ps[0] if memory else 1.0


def within(prices: Mapping[str, Predict], samples: Sequence[Sample]) -> Iterator[Result]:
    """Yield for each step, and for all, the share of samples that prices predict well."""
    for name in (*dict.fromkeys(sample.step.name for sample in samples), "all"):
        shares, notes = {}, []
        for kind, predict in prices.items():
            ratios = [predict(s) / s.call_seconds for s in samples if name in (s.step.name, "all")]
            shares[kind] = share_within(ratios)
            notes.append(f"{kind} {shares[kind]:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        yield Result.of(name, [shares["structures"]], unit="", note="; ".join(notes))


def in_proportion(which: str, prices: Mapping[str, Predict], samples: Sequence[Sample]) -> Result:
    """Return the share of samples, *which* says of what, that prices predict well beside others."""
    shares, notes = {}, []
    for kind, predict in prices.items():
        ratios = [predict(s) / s.call_seconds for s in samples]
        usual_ratio = median(ratios)
        shares[kind] = share_within([ratio / usual_ratio for ratio in ratios])
        notes.append(f"{kind} {shares[kind]:.2f} (median {usual_ratio:.2f})")
    return Result.of(
        f"{which}, in proportion", [shares["structures"]], unit="", note="; ".join(notes)
    )


def share_within(ratios: Sequence[float]) -> float:
    """Return how large a share of *ratios* is good."""
    return sum(_LEAST <= ratio <= _MOST for ratio in ratios) / len(ratios)


def ordered(prices: Mapping[str, Predict], samples: Sequence[Sample]) -> Iterator[Result]:
    """Yield for each kind of structure the share of pairs that are ordered as in real time."""
    for structures, names in _ALTERNATIVES.items():
        cases: dict[tuple[str, int, int], list[Usual]] = defaultdict(list)
        for one in usual(prices, samples):
            structure, _, operation = one.step.name.partition(".")
            if structure in names:
                cases[operation, one.step.size, one.step.rows].append(one)
        pairs = [
            sorted(pair, key=lambda one: one.took)
            for case in cases.values()
            for pair in combinations(case, 2)
        ]
        pairs = [p for p in pairs if p[1].took >= _DIFFERENT * p[0].took]
        shares = {
            kind: sum(less.priced[kind] < more.priced[kind] for less, more in pairs) / len(pairs)
            for kind in prices
        }
        notes = (f"{kind} {share:.2f}" for kind, share in shares.items())
        yield Result.of(
            f"{structures}: order", [shares["structures"]], unit="", note="; ".join(notes)
        )


def turned_round(prices: Mapping[str, Predict], samples: Sequence[Sample]) -> Iterator[Result]:
    """Yield for some pairs of steps, at a size, what one takes over the other: really, and priced.

    It is in calls of the most tuples that were measured.
    """
    calls = usual(prices, samples)
    for one, other, size in _INVERSIONS:
        at = {
            name: max(
                (c for c in calls if c.step[::2] == (name, size)),
                key=lambda one: one.step.rows,
                default=None,
            )
            for name in (one, other)
        }
        left, right = at.values()
        if left is None or right is None:
            continue
        real = left.took / right.took
        notes = (f"{kind} {left.priced[kind] / right.priced[kind]:.2f}" for kind in prices)
        name = f"{one} over {other}, {size:,}"
        yield Result.of(name, [real], unit="", note=f"real; priced by {', by '.join(notes)}")


@dataclass(frozen=True)
class Usual:
    """What a call takes, and by each kind of prices should: merges in between are in its share."""

    step: Step
    took: float
    priced: dict[str, float]


def usual(prices: Mapping[str, Predict], samples: Sequence[Sample]) -> list[Usual]:
    """Return the usual variant of every step, each once for its size, tuples and matches."""
    cases: dict[tuple[Step, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        if not sample.variant:
            cases[sample.step, sample.matches].append(sample)
    return [
        Usual(
            step=step,
            took=sum(s.seconds for s in some) / sum(s.calls for s in some),
            priced={
                kind: sum(predict(s) * s.calls for s in some) / sum(s.calls for s in some)
                for kind, predict in prices.items()
            },
        )
        for (step, _), some in cases.items()
    ]


if __name__ == "__main__":
    main()

"""What an approximate run says of its recall, what that was, and whether links kept to a budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from actors.feed import StreamData
from actors.protocol import NS_PER_S
from actors.result_files import summary_path
from joins.semijoins.value_sample import TupleSample
from netsim.outcome import Outcome
from scenarios.plan import Plan
from scenarios.verdict import CheckResult, Verdict
from scenarios.verdict.trace_checks import ReadTrace
from topologies.topology import Approximation


@dataclass(frozen=True, kw_only=True)
class Approximated:
    """An approximate run's figures.

    Attributes
    ----------
    stated_recall, standard_error
        The share of the results that it says it gave, from those alone; None where it gave none.
    recall
        What that share was; None where no result was expected.
    link, link_bytes_ps
        The busiest link, by its two sites, and its bytes a second on average over the run.
    byte_budget
        Most that any link may carry; None for any.
    exact
        Whether exactly the results of what is kept were promised.
    """

    stated_recall: float | None
    standard_error: float | None
    recall: float | None
    link: str
    link_bytes_ps: float
    byte_budget: int | None
    exact: bool

    def checks(self, verdict: Verdict) -> list[CheckResult]:
        """Return that the results are those of what is kept, and that links kept to the budget."""
        stated = (
            "nothing was found to state a recall from"
            if self.stated_recall is None or self.standard_error is None
            else f"recall {self.stated_recall:.3f} ± {self.standard_error:.3f} stated"
        )
        true = "" if self.recall is None else f", {self.recall:.3f} true"
        too_many = verdict.spurious + verdict.duplicate
        passed: bool | None = not (verdict.off_sample or too_many)
        if not verdict.tested or (verdict.off_sample and not too_many and not self.exact):
            passed = None
        detail = (
            f"{stated}{true}; {too_many:,} results too many, {verdict.off_sample:,} tuples without "
            "just the results of what is kept"
        )
        if not verdict.adds_up:
            passed = False
            detail += "; these counts do not add up, nor does the recall"
        found = [CheckResult(name="sample", passed=passed, detail=detail)]
        if self.byte_budget is not None:
            sent = f"{self.link_bytes_ps:,.0f} of {self.byte_budget:,} bytes a second"
            within = self.link_bytes_ps <= self.byte_budget
            found.append(
                CheckResult(
                    name="byte budget", passed=within, detail=f"busiest link {self.link}: {sent}"
                )
            )
        return found


def measure_approximation(
    plan: Plan,
    approximation: Approximation,
    directory: Path,
    outcome: Outcome,
    verdict: Verdict,
    trace: ReadTrace,
) -> Approximated:
    """Return the figures of the approximate run in *directory*."""
    stated, error = _stated_recall(approximation.kept, plan.files, directory)
    recovered = outcome.recovered
    link, nbytes = _busiest_link(trace, plan.graph().placement)
    return Approximated(
        stated_recall=stated,
        standard_error=error,
        recall=verdict.right / verdict.expected if verdict.expected else None,
        link=link,
        link_bytes_ps=nbytes * NS_PER_S / max(outcome.virtual_ns, 1),
        byte_budget=approximation.byte_budget,
        exact=approximation.exact and not (recovered and recovered.weakens),
    )


def _stated_recall(
    kept: Sequence[TupleSample], files: Sequence[StreamData], directory: Path
) -> tuple[float | None, float | None]:
    """Return the recall and its standard error as estimated from the results; None of none."""
    found = [
        _results_by_value(tuples, file, summary_path(directory, stream))
        for stream, (tuples, file) in enumerate(zip(kept, files, strict=True))
    ]
    values, of = np.unique(np.concatenate([values for values, _ in found]), return_inverse=True)
    results = np.bincount(of, np.concatenate([counts for _, counts in found]), len(values))
    return kept[0].values.recall(values, results) if results.any() else (None, None)


def _results_by_value(
    kept: TupleSample, file: StreamData, summary: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a stream's probing tuples, and how many results each had."""
    table = pq.read_table(summary, columns=["probe_id", "count"])
    columns = [batch.fields[kept.field] for batch in file.batches()]
    values = np.concatenate([np.empty(0), *columns])
    probe_id, count = table["probe_id"].to_numpy(), table["count"].to_numpy()
    known = (probe_id >= 0) & (probe_id < len(values))
    return values[probe_id[known]], count[known]


def _busiest_link(trace: ReadTrace, placement: Mapping[str, str]) -> tuple[str, int]:
    """Return the two sites between which most bytes went, and how many."""
    carried: Counter[str] = Counter()
    for channel, nbytes in trace.nbytes.items():
        ends = {placement[actor] for actor in channel}
        if len(ends) == 2:
            carried[" - ".join(sorted(ends))] += nbytes
    return max(carried.items(), key=lambda item: item[1], default=("none", 0))

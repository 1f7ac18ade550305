"""HP-OIJ (PPOIJ, sections 3.3 and 4.3): a key is split over some of the replicas.

Between KP-OIJ, which cannot share a frequent key's load, and DP-OIJ, which sends every tuple to
all replicas.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Interval
from pydantic.dataclasses import dataclass

from actors.interval_join.calibration import CalibratingEmitter, Master
from actors.interval_join.distribution import BySplitKey
from actors.interval_join.emitter import Emitter
from actors.protocol import FEEDBACK
from topologies.actor_graph import ActorGraph
from topologies.interval_join import CollectedParameters, KeyedParameters, OijPattern
from topologies.topology import STRICT, Pes

Threshold = Annotated[float, Interval(ge=1, le=1000)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class HpOijParameters(CollectedParameters, KeyedParameters):
    """What a person may set of HP-OIJ.

    Attributes
    ----------
    splitting
        Over how many replicas every key is split; None measures how frequent each key is and
        splits them accordingly.
    heuristic
        How they are split then: the paper's Algorithm 1, or our own, which splits fewer keys.
    calibration_turns
        For how many of its source's messages an emitter measures.
    recalibration_turns
        For how many it measures again and again after that, to split keys anew when their
        distribution has drifted; None measures once, as the paper does.
    threshold
        θ: how far above the average the most loaded replica may be.
    max_splitting
        Most replicas of a key; None allows all.
    """

    splitting: Pes | None = None
    heuristic: Literal["algorithm_1", "busiest_first"] = "algorithm_1"
    calibration_turns: Pes = 4
    recalibration_turns: Pes | None = None
    threshold: Threshold = 1.1
    max_splitting: Pes | None = None


class HpOij(OijPattern[HpOijParameters]):
    """Partial multicast, batches of one key, and watermarks of keys."""

    name = "hp_oij"
    title = "HP-OIJ: interval join, each key split over as many replicas as it needs"
    parameters_type = HpOijParameters

    def emitter(self, parameters: HpOijParameters) -> tuple[type[Emitter], dict[str, Any]]:
        """Return emitters that multicast, calibrated unless the splitting degree is set."""
        p = parameters
        if p.splitting is not None:
            return Emitter, {"distribution": BySplitKey(p.homes, p.splitting)}
        return CalibratingEmitter, {
            "calibration_turns": p.calibration_turns,
            "recalibration_turns": p.recalibration_turns,
            "homes": p.homes,
        }

    def add_feedback(
        self,
        graph: ActorGraph,
        emitters: list[str],
        replicas: list[str],
        parameters: HpOijParameters,
    ) -> None:
        """Add the master beside the first replica, if emitters are calibrated."""
        p = parameters
        if p.splitting is not None:
            return
        master = graph.add(
            "master",
            "master",
            Master,
            site=replicas[0],
            channels=len(emitters),
            homes=p.homes,
            heuristic=p.heuristic,
            threshold=p.threshold,
            max_splitting=p.max_splitting or p.replicas,
        )
        for emitter in emitters:
            graph.connect(emitter, "master", master)
        graph.connect(master, FEEDBACK, *emitters)

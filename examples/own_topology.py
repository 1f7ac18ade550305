"""A topology of one's own: every tuple is stored at one PE and probes at all of them.

It is a class in this file. joinsim runs it, checks its answer, and checks that it keeps to the
contract that all topologies keep to.
"""

import numpy as np

import joinsim as js
from actors.window_join import RoundRobinRouting
from topologies.topology import Job
from topologies.window_join import Layout, PeParameters, WindowJoinTopology

QUERY = "SELECT * FROM R, S WHERE R.x < S.x AND R.y > S.y WINDOW AS (SLIDE INTERVAL '1' ON '100')"


class StoreOnceProbeAll(WindowJoinTopology[PeParameters]):
    """Both streams share all PEs, in turns; a tuple probes wherever the other stream is stored."""

    name = "store_once_probe_all"
    title = "Stored at one PE in turns, probed at all"
    paper = "An example"
    parameters_type = PeParameters

    def lay_out(self, job: Job, parameters: PeParameters) -> Layout:
        """Return the PEs, with a nested loop at each."""
        return Layout(
            routing=RoundRobinRouting(sides=(range(parameters.pes),) * 2),
            joiners={"joiner": parameters.pes},
            index="nested_loop",
        )


def main() -> None:
    rng = np.random.default_rng(1)
    streams = {name: {"x": rng.random(500), "y": rng.random(500)} for name in ("R", "S")}
    for pes in (1, 2, 4, 8):
        run = js.run(QUERY, streams, topology=StoreOnceProbeAll, pes=pes, seed=1)
        assert run.verdict.exact
        print(f"{pes} PEs: {run.summary['throughput_tps']:>10,.0f} tuples/s (virtual), exact")
    for check in js.checks.check_topology(StoreOnceProbeAll, examples=5):
        check()
        print(f"holds: {check}")


if __name__ == "__main__":
    main()

"""Hash join for equalities, as Apache Storm joins streams (SPO-Join, Figures 22 and 23).

Tuples are grouped by the field that an equality compares: Storm's fields grouping. Both streams use
the same hash, so that tuples with equal values meet at one PE, where a hash table finds them;
further predicates are checked on what it finds::

    source -> router -+-> joiner.0 -+-> sink
                      +-> joiner.1 -+
                      +-> ...      -+

A tuple costs one message and one answer. Work follows the values: a PE has as much of it as its
values are frequent. Storm joins windows batch against batch; here each tuple probes as it comes,
like in every other system here, and the windows slide as the query says.
"""

from __future__ import annotations

from actors.window_join.routing import ByKey
from topologies.topology import Job, TopologyError
from topologies.window_join import Layout, PeParameters, WindowJoin


class HashJoin(WindowJoin[PeParameters]):
    """Streams partitioned by the hash of the value they are joined on."""

    name = "hash_join"
    title = "Hash join: tuples meet where the hash of their equal values sends them"
    paper = "Storm@Twitter (Toshniwal et al., SIGMOD 2014); SPO-Join, Figures 22 and 23"
    parameters_type = PeParameters
    needs_equality = True
    example_query = (
        "SELECT R.POW_ID, S.POW_ID FROM R, S "
        "WHERE R.POWER = S.POWER AND R.COOL > S.COOL "
        "WINDOW AS (SLIDE INTERVAL '10' ON '60')"
    )

    def lay_out(self, job: Job, parameters: PeParameters) -> Layout:
        """Return PEs partitioned by the query's first equality.

        Raise :exc:`TopologyError` when it has none.
        """
        query = job.query
        if query.key is None:
            raise TopologyError(
                "hash_join needs a predicate with =, to partition tuples by; the query has only "
                + ", ".join(str(predicate) for predicate in query.predicates)
            )
        schemas = tuple(file.schema for file in job.files)
        return Layout(
            routing=ByKey(
                pes=parameters.pes,
                equalities=tuple(
                    query.conditions(stream, schemas)[query.key]
                    for stream in range(len(query.streams))
                ),
            ),
            joiners={"joiner": parameters.pes},
            index="hash",
            nodes=parameters.nodes,
        )

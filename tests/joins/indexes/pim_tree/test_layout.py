"""The arrays of a forest."""

from hypothesis import given
from hypothesis import strategies as st

from joins.indexes.pim_tree.forest import Sizes, make_forest, resize

room = st.fixed_dictionaries(
    {
        "run_entries": st.integers(0, 200),
        "tree_nodes": st.integers(1, 200),
        "subindexes": st.integers(1, 50),
    }
)


@given(room, room)
def test_what_has_room_is_not_copied(first, more):
    slots = Sizes(2, 2, run_width=8, nodes=first["tree_nodes"], subindexes=first["subindexes"])
    made = make_forest(slots, sides=2, run_entries=first["run_entries"], tree_width=4)
    forest = resize(made, **more)
    assert resize(forest, **first) is forest
    assert resize(forest, **more) is forest

"""The arrays of a forest."""

from hypothesis import given
from hypothesis import strategies as st

from joins.indexes.pim_tree.forest import make_forest, resize

room = st.fixed_dictionaries(
    {
        "run_entries": st.integers(0, 200),
        "tree_nodes": st.integers(1, 200),
        "subindexes": st.integers(1, 50),
    }
)


@given(room, room)
def test_what_has_room_is_not_copied(first, more):
    layout = {"sides": 2, "runs": 2, "trees": 2, "run_width": 8, "tree_width": 4}
    forest = resize(make_forest(**layout, **first), **more)
    assert resize(forest, **first) is forest
    assert resize(forest, **more) is forest

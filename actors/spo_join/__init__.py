"""SPO-Join's operators (Figure 3): router, predicate, logical, permutation and PO-Join PEs."""

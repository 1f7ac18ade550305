"""SPO-Join's operators (Figure 3), a module each.

A tuple goes from the router (`router`) to the predicate PEs (`predicate_pe`), whose results for it
meet at a logical PE (`logical_pe`), and to the PO-Join PEs (`po_join_pe`). At a merge the predicate
PEs send what they have sorted to the permutation PEs (`permutation_pe`), and these to a PO-Join PE.
"""

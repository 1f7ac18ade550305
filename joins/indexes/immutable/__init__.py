"""Structures that a merge seals: PO-Join, CSS-trees, the prefix grid."""

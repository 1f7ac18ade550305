"""PanJoin's subwindows: RaP-Table, WiB+-Tree and BI-Sort (Pan and Jacobsen, section III)."""

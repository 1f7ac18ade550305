"""How PO-Join PEs know what has left the window (section 4.2), a way per file."""

"""PanJoin's manager, workers and prefilters (Pan and Jacobsen, section III-A)."""

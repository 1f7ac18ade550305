"""Results as people see them: pages, pictures, tables, and a few lines.

`run_pages` and `result_pages` write self-contained HTML of runs, and of studies and comparisons.
`result_tables` are the same there, in the terminal and in notebooks, which also share
`run_summary`. Pictures are Vega-Lite (`picture`), but for a topology, whose layout and drawing are
our own SVG (`topology_drawing`).
"""

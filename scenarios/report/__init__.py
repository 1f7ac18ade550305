"""Results as people see them: pages, pictures, tables, and a few lines.

`run_pages` and `result_pages` write self-contained HTML of runs, and of studies and comparisons.
`run_summary` and `result_tables` are what pages, terminal and notebooks share. Pictures are
Vega-Lite (`picture`), but for a topology, whose layout and drawing are our own SVG.
"""

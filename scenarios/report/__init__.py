"""Results as people see them: pages, pictures, tables, and a few lines.

`pages` writes self-contained HTML of runs, studies and comparisons. `summary` and `result_tables`
are what pages, terminal and notebooks share. Pictures are Vega-Lite (`picture`), but for a
topology, whose layout and drawing are our own SVG.
"""

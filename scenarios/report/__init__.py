"""Results as people see them: pages, pictures, tables, and a few lines.

`pages` writes self-contained HTML of runs, studies and comparisons. `summary` and `result_tables`
are what pages, terminal and notebooks share. A run's figures are plain SVG (`svg`); the modules of
all other figures draw with matplotlib, which is imported when the first such picture is drawn.
"""

"""Results as people see them: pages, pictures, tables, and a few lines.

`pages` writes self-contained HTML of runs, studies and comparisons. `summary` and `result_tables`
are what pages, terminal and notebooks share. The modules of figures draw with matplotlib, which is
imported when the first picture is drawn.
"""

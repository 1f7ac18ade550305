"""Plans before they are run: what a system will do with a query, and what that should cost."""

from __future__ import annotations

from collections.abc import Mapping

from scenarios.planners.planner import Planner
from scenarios.planners.semijoin_planner import SemijoinPlanner
from scenarios.planners.window_join_planner import WindowJoinPlanner

PLANNERS: Mapping[str, Planner] = {"semijoin": SemijoinPlanner(), "ibwj": WindowJoinPlanner()}
"""By topology, what plans for it; the first plans a query that comes without a topology."""

"""The two parts of each one-way join algorithm."""

from __future__ import annotations

from actors.semijoins.one_way.bloom_d import BloomDDestination, BloomDSource
from actors.semijoins.one_way.bloom_s import BloomSDestination, BloomSSource
from actors.semijoins.one_way.sm_d1 import SmD1Destination, SmD1Source
from actors.semijoins.one_way.sm_d2 import SmD2Destination, SmD2Source
from actors.semijoins.one_way.sm_s1 import SmS1Destination, SmS1Source
from actors.semijoins.one_way.sm_s2 import SmS2Destination, SmS2Source
from actors.semijoins.one_way.sp_d import SpDDestination, SpDSource
from actors.semijoins.one_way.sp_s import SpSDestination, SpSSource
from actors.semijoins.part import DestinationPart, SourcePart
from joins.semijoins.one_way_join import OneWayJoin

PARTS: dict[OneWayJoin, tuple[type[SourcePart], type[DestinationPart]]] = {
    OneWayJoin.SP_S: (SpSSource, SpSDestination),
    OneWayJoin.SP_D: (SpDSource, SpDDestination),
    OneWayJoin.SM_S1: (SmS1Source, SmS1Destination),
    OneWayJoin.SM_S2: (SmS2Source, SmS2Destination),
    OneWayJoin.SM_D1: (SmD1Source, SmD1Destination),
    OneWayJoin.SM_D2: (SmD2Source, SmD2Destination),
    OneWayJoin.BLOOM_S: (BloomSSource, BloomSDestination),
    OneWayJoin.BLOOM_D: (BloomDSource, BloomDDestination),
}
"""Algorithm to its part at N_1 and its part at N_2."""

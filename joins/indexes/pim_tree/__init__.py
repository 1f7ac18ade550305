"""The Partitioned In-memory Merge-Tree and its kin: IM-Tree, B-chain and IB-chain."""

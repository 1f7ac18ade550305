"""The roles of PPOIJ's interval joins: sources, emitters, replicas with their collectors."""

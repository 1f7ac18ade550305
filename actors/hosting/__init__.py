"""Hosts, which run actors.

In this process (`inline`), in others in virtual time (`process_host`), or in others at full speed
(`live`). The others are started by Ray (`ray_processes`).
"""

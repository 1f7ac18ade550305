"""Hosts: the same actors in this process (`inline`) or as Ray actors (`ray_host`)."""

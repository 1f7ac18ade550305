"""What can go wrong in hosting, apart from the libraries that do it."""


class RayUnavailableError(Exception):
    """Ray could not be started or reached, or went away; says where and what to do."""

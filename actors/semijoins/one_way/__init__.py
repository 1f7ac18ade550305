"""The one-way join algorithms: the paper's six, and two with Bloom filters."""

"""What one-way joins cost (Appendix B), and the statistics of streams that costs follow from."""

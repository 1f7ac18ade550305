"""Raw files in, prepared streams out."""

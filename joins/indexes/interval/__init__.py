"""What a replica of an interval join keeps."""

"""What the commands of the command line do, a file per group of them."""

"""What a run is, as TOML files and the command line say it."""

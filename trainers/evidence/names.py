"""What data, sweeps and methods are called on a page."""

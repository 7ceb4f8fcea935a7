"""What script/test runs."""

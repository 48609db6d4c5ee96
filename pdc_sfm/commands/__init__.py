"""One module per command: its arguments, and the call of the function that does the work."""

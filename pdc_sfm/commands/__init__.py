"""One module per verb of the command line: its arguments, and the call of the function that does the work."""

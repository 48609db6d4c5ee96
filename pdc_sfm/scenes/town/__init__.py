"""The built-in town square."""

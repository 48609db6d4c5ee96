"""Shared by several commands: arguments, settings and paths."""

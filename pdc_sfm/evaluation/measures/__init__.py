"""Measures: each by its definition, none of them knows how a result was made."""

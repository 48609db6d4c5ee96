"""Measures of accuracy. They do not depend on how a result was computed."""

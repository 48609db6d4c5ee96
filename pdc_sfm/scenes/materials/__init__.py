"""Appearance of surfaces, near and far."""

"""Cameras and points: verification, mapping, triangulation."""

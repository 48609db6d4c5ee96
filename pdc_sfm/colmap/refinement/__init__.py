"""A model made exact by its images."""

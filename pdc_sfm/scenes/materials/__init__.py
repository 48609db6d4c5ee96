"""How surfaces look, near and far."""

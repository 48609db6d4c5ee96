"""A map in metres: moved, turned and scaled to known positions, control points or distances."""

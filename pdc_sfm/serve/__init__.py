"""A map that answers: the road from a photograph to its pose with everything in memory, and the server around it."""

"""The localization server: a map in memory that localizes photographs, and the HTTP server around it."""

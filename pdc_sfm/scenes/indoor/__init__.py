"""Rooms with furniture, shelves and clutter, seen across and from above."""

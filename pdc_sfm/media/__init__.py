"""Turns HEIC files, videos and panoramas into photographs."""

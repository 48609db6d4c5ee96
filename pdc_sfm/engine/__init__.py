"""Matches a pair list into hloc files: which pairs, in which order, with how much memory."""

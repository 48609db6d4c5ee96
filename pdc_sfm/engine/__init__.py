"""Which pairs, in which order, with what memory: a pair list to hloc files."""

"""From a dense estimate to matches: threshold, both directions, snapping, tracks."""

"""How good matches, confidence and poses are: datasets with a truth, measures, and the runs that bring them together."""

"""File formats: pair lists, hloc's h5, the journal. A crash loses nothing, and a rerun repeats nothing."""

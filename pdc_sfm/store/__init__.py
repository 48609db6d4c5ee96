"""hloc files: read as hloc reads, written so that no crash loses and no rerun repeats. Only this room knows h5."""

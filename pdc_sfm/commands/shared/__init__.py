"""What several verbs share: their arguments, settings and paths."""

"""Steps that are recorded and resumed, shared by the long runs."""

"""Steps that are recorded and resumed: what the long runs share."""

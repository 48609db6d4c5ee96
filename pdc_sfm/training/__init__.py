"""Self-supervised pairs, losses and the trainer."""

"""Aachen Day-Night: from the dataset's folder to the file to submit."""

"""Files: COLMAP's database, models, cameras, results."""

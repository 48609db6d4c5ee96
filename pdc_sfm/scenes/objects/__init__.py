"""Single things and heaps of them on tables and turntables, seen from around and above."""

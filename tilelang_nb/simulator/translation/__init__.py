"""Thread program -> NumPy source."""

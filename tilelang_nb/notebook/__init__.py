"""IPython's side of the package: the magics, their options and completion, and what a cell shows."""

"""From a compiled kernel to a result: kernels as callables, binding of arguments, launches, and the compilation of a
cell.
"""

"""The tile operations: one module each.

Element-wise operations have `expand(call, launch) -> Stmt`: legalise replaces them by T.Parallel loops.  The others
have `lower` and perhaps `constrain` (see `lowering/context.py`) and are listed in `operations.OPERATIONS`.
"""

"""`python -m tilelang_nb`: the same as `tilelang-nb`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())

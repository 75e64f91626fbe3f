"""`python -m trueline`."""

from trueline.cli import main

if __name__ == "__main__":
    main()

"""``python -m unsample`` is the command ``unsample``."""

from unsample.cli import main

if __name__ == "__main__":
    main()

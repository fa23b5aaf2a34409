"""`python -m loratrial` is the `loratrial` command."""

from loratrial.cli import main

if __name__ == "__main__":
    main()

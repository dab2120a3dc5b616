"""Phrasemask: `python app.py` opens the page, `python app.py --help` lists the commands."""

from annotator.cli import main

if __name__ == "__main__":
    main()

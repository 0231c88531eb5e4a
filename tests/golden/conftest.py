"""The script that made the files of a version knows the names of that version only."""

collect_ignore_glob = ["make_*.py"]

"""What all verbs share: groups, output, files and how numbers are read."""

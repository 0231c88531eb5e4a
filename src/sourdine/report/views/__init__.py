"""What objects show of themselves: a module for each package, named like it, which `core.view` loads."""

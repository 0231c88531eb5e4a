"""`sourdine audit`."""

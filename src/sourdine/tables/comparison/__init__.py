"""What is computed from answers: differences, ratios, shares and changes, each with its interval."""

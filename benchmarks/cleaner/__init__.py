"""A table cleaned cell by cell, beside a loop over its values."""

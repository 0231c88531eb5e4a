"""What every room stands on: errors, checks, bits, exact samplers, the law of a privacy loss, mechanisms."""

"""The memory of training as it is forecast from small dry runs, beside what it takes."""

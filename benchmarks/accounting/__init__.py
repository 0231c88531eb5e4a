"""One epsilon and one calibration of private training, beside dp_accounting."""

"""Private classifiers beside diffprivlib and private boosting, on Adult and Pima: accuracy and AUC."""

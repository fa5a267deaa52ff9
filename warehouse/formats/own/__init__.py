"""Files that users write themselves, beside a release."""

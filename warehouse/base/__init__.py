"""What every package uses and what knows none of them: errors, settings, hashes, texts, and a quick start-up."""

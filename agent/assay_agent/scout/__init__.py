"""The scout: an analyst by rules that plays a language model's part over the same port, and is named for what it is."""

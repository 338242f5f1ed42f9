"""The pages of docs/reference, each a function that returns its whole text. Nothing is written here."""

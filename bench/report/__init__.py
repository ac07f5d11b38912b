"""The text and the pictures of RESULTS.md."""

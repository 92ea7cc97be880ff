"""The pages for whoever holds a claim or a key: one document, on a phone, as it becomes known."""

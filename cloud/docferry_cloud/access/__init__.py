"""Who may call: keys and what they allow, limits on calls, and the record of who did what."""

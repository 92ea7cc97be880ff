"""The operator's console: pages for people, rendered by the gateway from the same rpcs that everyone calls."""

"""The edge agent: reads paper where it lies and sends only what the cloud needs."""

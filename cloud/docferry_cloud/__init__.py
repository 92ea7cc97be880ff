"""The cloud service: takes envelopes in, interprets them, and publishes what it found."""

"""The HTTP face of the service: a client of its gRPC side, so that nothing leads around what is checked there."""

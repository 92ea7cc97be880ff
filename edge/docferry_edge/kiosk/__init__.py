"""The kiosk's page: what the camera sees and what is being read, for a browser on this very machine."""

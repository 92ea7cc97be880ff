"""How subscribers are told: one loop over delivery rows (`loop`) and a small adapter for every kind (`port`)."""

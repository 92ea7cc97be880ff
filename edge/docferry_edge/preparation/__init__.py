"""The parts of preparing a page: pure functions over pixels, one noun a module; `prepare` strings them up."""

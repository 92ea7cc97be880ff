"""How sure to be: signals of a line, the numbers they are weighed with, and thresholds that keep a stated risk."""

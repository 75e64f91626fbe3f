"""What adapters of all frameworks do alike. Imports no framework: it is given arrays, and functions that read tensors."""

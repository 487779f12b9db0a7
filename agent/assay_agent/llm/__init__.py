"""Language models over the port: which model serves which layer, what each call cost, and reading replies."""

"""Training of the verifier: data, train, calibrate, evaluate, export. Not part of the package."""

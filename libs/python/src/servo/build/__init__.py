"""From a folder of code to what is deployed: manifest, sources and locked requirements, each named by its sha256."""

//! A private Postgres, a throw-away CA, free ports and child processes for demo, dev, tests, chaos and bench.

//! What every service binary shares: configuration, TLS identity, authorisation, deadlines, telemetry, health, shutdown, peer clients.

//! How a service connects to Postgres, and how many connections it may use.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use servo_model::Service;
use sqlx::postgres::PgConnectOptions;

use crate::ownership::Role;

/// Connections reserved for administrators, backups and the migration.
pub(crate) const CONNECTIONS_RESERVED: u32 = 10;

/// The `[database]` section of a service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseConfig {
    /// `postgres://host:port/database`, optionally with `?sslmode=…`. The user is the service's own
    /// role.
    #[serde(deserialize_with = "checked_url")]
    pub url: String,
    /// The password of both of the service's roles.
    pub password: SecretString,
    /// Connections for request handlers.
    #[serde(default = "default_pool_connections")]
    pub requests_connections: u32,
    /// Connections for loops and shared commits.
    #[serde(default = "default_pool_connections")]
    pub loops_connections: u32,
    /// The connection limit of all instances of all services that share this Postgres. No process
    /// can count the others' pools, so the operator states the sum here and every service checks it
    /// at startup.
    #[serde(default = "default_fleet_connections")]
    pub fleet_connections: u32,
    /// How long a caller waits for a connection before the store counts as unavailable.
    #[serde(default = "default_acquire_timeout_ms")]
    pub acquire_timeout_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("database.{key}: {fault}")]
pub struct BadConfig {
    pub key: &'static str,
    pub fault: String,
}

impl DatabaseConfig {
    /// A configuration with default pool sizes.
    pub fn new(url: impl Into<String>, password: impl Into<SecretString>) -> Self {
        DatabaseConfig {
            url: url.into(),
            password: password.into(),
            requests_connections: default_pool_connections(),
            loops_connections: default_pool_connections(),
            fleet_connections: default_fleet_connections(),
            acquire_timeout_ms: default_acquire_timeout_ms(),
        }
    }

    /// The maximum number of connections of this process.
    pub fn connections(&self) -> u32 {
        self.requests_connections + self.loops_connections
    }

    pub(crate) fn acquire_timeout(&self) -> Duration {
        Duration::from_millis(self.acquire_timeout_ms)
    }

    /// Checks the settings before any connection is opened.
    pub(crate) fn validate(&self, service: Service) -> Result<(), BadConfig> {
        let bad = |key, fault: &str| {
            Err(BadConfig {
                key,
                fault: fault.to_owned(),
            })
        };
        if !service.has_store() {
            return bad(
                "url",
                "the console stores no rows and has no database role; remove the section",
            );
        }
        parse_url(&self.url)?;
        if self.password.expose_secret().is_empty() {
            return bad(
                "password",
                "is empty; set it to the password that `migrate` gave the service roles",
            );
        }
        if self.requests_connections == 0 {
            return bad(
                "requests_connections",
                "is 0; a request handler needs at least 1 connection",
            );
        }
        if self.loops_connections < 2 {
            return bad(
                "loops_connections",
                "is below 2; shared commits use one, so loops need a second",
            );
        }
        if self.acquire_timeout_ms == 0 {
            return bad(
                "acquire_timeout_ms",
                "is 0; no connection could ever be acquired",
            );
        }
        Ok(())
    }

    pub(crate) fn options(&self, role: Role) -> Result<PgConnectOptions, BadConfig> {
        let name = role.name();
        Ok(parse_url(&self.url)?
            .username(&name)
            .password(self.password.expose_secret())
            .application_name(&name))
    }
}

fn parse_url(url: &str) -> Result<PgConnectOptions, BadConfig> {
    let bad = |fault: String| BadConfig { key: "url", fault };
    let expected = "expected postgres://host:port/database";
    let rest = url
        .strip_prefix("postgres://")
        .or_else(|| url.strip_prefix("postgresql://"));
    let rest = rest.ok_or_else(|| bad(format!("does not start with postgres://; {expected}")))?;
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    if authority.contains('@') {
        return Err(bad(format!(
            "names a user; each service connects as its own roles, {expected}"
        )));
    }
    let options: PgConnectOptions = url
        .parse()
        .map_err(|error| bad(format!("is not a URL ({error}); {expected}")))?;
    if authority.is_empty() && !rest.contains("host=") {
        return Err(bad(format!("names no host; {expected}")));
    }
    match options.get_database() {
        Some(database) if !database.is_empty() => Ok(options),
        _ => Err(bad(format!("names no database; {expected}"))),
    }
}

/// Reports a wrong URL together with all other faults of the configuration.
fn checked_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let url = String::deserialize(deserializer)?;
    match parse_url(&url) {
        Ok(_) => Ok(url),
        Err(bad) => Err(D::Error::custom(format!("it {}", bad.fault))),
    }
}

fn default_pool_connections() -> u32 {
    4
}

fn default_fleet_connections() -> u32 {
    80
}

fn default_acquire_timeout_ms() -> u64 {
    2_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, fault: &str) {
        let config = DatabaseConfig::new(url, "secret");
        let outcome = config
            .validate(Service::Planner)
            .map_err(|bad| bad.to_string());
        match outcome {
            Ok(()) => assert_eq!(fault, "", "{url} was accepted"),
            Err(message) => assert!(
                !fault.is_empty() && message.contains(fault),
                "{url}: {message}"
            ),
        }
    }

    #[test]
    fn urls_are_validated_before_connecting() {
        check("postgres://127.0.0.1:5432/servo", "");
        check("postgresql://db.internal/servo?sslmode=verify-full", "");
        check(
            "mysql://127.0.0.1/servo",
            "database.url: does not start with postgres://",
        );
        check("postgres://root:pw@127.0.0.1/servo", "names a user");
        check("postgres://127.0.0.1:5432", "names no database");
        check("postgres:///servo", "names no host");
        check("postgres://127.0.0.1:fish/servo", "is not a URL");
    }

    #[test]
    fn pool_sizes_have_a_minimum() {
        let mut config = DatabaseConfig::new("postgres://127.0.0.1/servo", "secret");
        config.loops_connections = 1;
        assert_eq!(
            config.validate(Service::Quota).unwrap_err().key,
            "loops_connections"
        );
    }

    #[test]
    fn the_console_has_no_store() {
        let config = DatabaseConfig::new("postgres://127.0.0.1/servo", "secret");
        assert!(config.validate(Service::Console).is_err());
    }

    #[test]
    fn the_password_is_not_printed() {
        let config = DatabaseConfig::new("postgres://127.0.0.1/servo", "open-sesame");
        assert!(!format!("{config:?}").contains("open-sesame"));
    }
}

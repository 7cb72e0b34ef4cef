//! The closed list of store errors, and what a caller can do about each.

use sqlx::error::DatabaseError;
use sqlx::postgres::PgDatabaseError;

/// Raised by the fence when the lease is lost.
const LEASE_LOST: &str = "SVL01";
/// Raised by a holder's append, see `ledger.append_held`.
const BEHIND: &str = "SVB01";
const CLOCK_OFF: &str = "SVC01";
const KEY_TAKEN: &str = "SVK01";

/// Two concurrent callers that use one key on two shards conflict at this constraint; the later one
/// retries and finds the key.
const KEYS_CONSTRAINT: &str = "keys_pkey";

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no connection, or it broke. An unfinished transaction may or may not have been
    /// committed.
    #[error("Postgres is unavailable ({0}); try again in a moment")]
    Unavailable(String),
    /// A statement exceeded its role's timeout. Nothing was committed; a smaller statement may be
    /// fast enough.
    #[error("Postgres took too long ({0}); try again in a moment")]
    Slow(String),
    /// Lost a race for a lock. Nothing was committed; the same transaction may be retried.
    #[error("a concurrent transaction conflicted ({0}); retry this one")]
    Raced(String),
    /// The lease is held by another instance, has expired, or its watermark was moved. Nothing was
    /// written.
    #[error("{0}; drop the shard and acquire it again")]
    LeaseLost(String),
    /// Another appender was first. Nothing was written: read and fold the new events, then retry.
    #[error("{0}; read the new events and retry")]
    Behind(String),
    /// The given time differs from the database's. Nothing was written.
    #[error("{0}; check the database's clock and retry")]
    ClockOff(String),
    /// The ledger has an event with this idempotency key. Nothing was written.
    #[error("{0}; append the events one by one to find out which")]
    KeyTaken(String),
    /// The role lacks the privilege.
    #[error("Postgres refused: {0}")]
    Refused(String),
    /// A statement of the transaction failed and its error was ignored.
    #[error("an earlier statement of this transaction failed, so nothing of it was committed")]
    Aborted,
    /// Errors that a caller cannot act on: a wrong statement, a violated constraint, a value that
    /// does not decode.
    #[error(transparent)]
    Database(sqlx::Error),
}

impl StoreError {
    /// Whether retrying the same transaction later may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            StoreError::Unavailable(_) | StoreError::Slow(_) | StoreError::Raced(_)
        )
    }

    /// Whether the values of a statement caused the error, so that a retry cannot succeed but a
    /// statement without them can: a value that does not encode, data exceptions, violated
    /// constraints, exceeded limits.
    pub fn is_about_values(&self) -> bool {
        match self {
            StoreError::Database(sqlx::Error::Encode(_)) => true,
            StoreError::Database(sqlx::Error::Database(error)) => {
                error.code().is_some_and(|code| {
                    ["22", "23", "54"]
                        .iter()
                        .any(|class| code.starts_with(class))
                })
            }
            _ => false,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(database) => match kind_of(database.as_ref()) {
                Kind::ConnectionLost => {
                    StoreError::Unavailable(message_with_hint(database.as_ref()))
                }
                Kind::Slow => StoreError::Slow(message_with_hint(database.as_ref())),
                Kind::Raced => StoreError::Raced(message_with_hint(database.as_ref())),
                Kind::LeaseLost => StoreError::LeaseLost(message_with_hint(database.as_ref())),
                Kind::Behind => StoreError::Behind(message_with_hint(database.as_ref())),
                Kind::ClockOff => StoreError::ClockOff(message_with_hint(database.as_ref())),
                Kind::KeyTaken => StoreError::KeyTaken(message_with_hint(database.as_ref())),
                Kind::Refused => StoreError::Refused(message_with_hint(database.as_ref())),
                Kind::Other => StoreError::Database(error),
            },
            sqlx::Error::PoolTimedOut => StoreError::Unavailable(
                "no connection became free within database.acquire_timeout_ms".into(),
            ),
            _ if connection_is_lost(&error) => StoreError::Unavailable(error.to_string()),
            _ => StoreError::Database(error),
        }
    }
}

/// Whether the connection is lost, and with it the unfinished transaction.
pub(crate) fn connection_is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(database) => {
            matches!(kind_of(database.as_ref()), Kind::ConnectionLost)
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        _ => false,
    }
}

enum Kind {
    ConnectionLost,
    Slow,
    Raced,
    LeaseLost,
    Behind,
    ClockOff,
    KeyTaken,
    Refused,
    Other,
}

fn kind_of(error: &dyn DatabaseError) -> Kind {
    match error.code().as_deref() {
        // Shut down, crashed, starting up, terminated by an idle timeout, too many connections.
        Some("57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04" | "53300") => {
            Kind::ConnectionLost
        }
        Some(code) if code.starts_with("08") => Kind::ConnectionLost,
        Some("57014") => Kind::Slow,
        Some("40001" | "40P01" | "55P03") => Kind::Raced,
        Some("23505") if error.constraint() == Some(KEYS_CONSTRAINT) => Kind::Raced,
        Some(LEASE_LOST) => Kind::LeaseLost,
        Some(BEHIND) => Kind::Behind,
        Some(CLOCK_OFF) => Kind::ClockOff,
        Some(KEY_TAKEN) => Kind::KeyTaken,
        // Insufficient privilege; unknown role or wrong password.
        Some("42501" | "28000" | "28P01") => Kind::Refused,
        _ => Kind::Other,
    }
}

fn message_with_hint(error: &dyn DatabaseError) -> String {
    let hint = error
        .try_downcast_ref::<PgDatabaseError>()
        .and_then(PgDatabaseError::hint);
    match hint {
        Some(hint) => format!("{} ({hint})", error.message()),
        None => error.message().to_owned(),
    }
}

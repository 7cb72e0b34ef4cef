//! The closed list of what can go wrong in the store, and what a caller can do about each.

use sqlx::error::DatabaseError;
use sqlx::postgres::PgDatabaseError;

/// The fence raises this when the lease is gone.
const LEASE_LOST: &str = "SVL01";
/// A holder's append raises these, see `ledger.fold`.
const BEHIND: &str = "SVB01";
const CLOCK_OFF: &str = "SVC01";
const KEY_TAKEN: &str = "SVK01";

/// Racing callers with one key on two shards meet at this constraint; the later one repeats and finds it.
const KEYS_CONSTRAINT: &str = "keys_pkey";

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No connection, or it broke. What was under way may or may not have been committed.
    #[error("Postgres is unavailable ({0}); try again in a moment")]
    Unavailable(String),
    /// A statement took longer than its role may. Nothing was committed; with less to do it may be fast enough.
    #[error("Postgres took too long ({0}); try again in a moment")]
    Slow(String),
    /// Lost a race for a lock. Nothing was committed; the same transaction may simply be repeated.
    #[error("another transaction was in the way ({0}); repeat this one")]
    Raced(String),
    /// The lease is held by somebody else, ran out, or its watermark was moved. Nothing was written.
    #[error("{0}; drop the shard and acquire it again")]
    LeaseLost(String),
    /// Somebody else appended to the shard first. Nothing was written: read on, fold, and repeat.
    #[error("{0}; read what was appended and repeat")]
    Behind(String),
    /// The time given is not the database's. Nothing was written.
    #[error("{0}; look at the database's clock and repeat")]
    ClockOff(String),
    /// An event with this idempotency key stands in the ledger. Nothing was written.
    #[error("{0}; append the events one by one to learn which")]
    KeyTaken(String),
    /// The role may not do this.
    #[error("Postgres refused: {0}")]
    Refused(String),
    /// A statement of the transaction failed and its error was passed over.
    #[error("an earlier statement of this transaction failed, so nothing of it was committed")]
    Aborted,
    /// Everything nobody can act on: a wrong statement, a violated constraint, a value that does not decode.
    #[error(transparent)]
    Database(sqlx::Error),
}

impl StoreError {
    /// Whether repeating the same transaction may help, given time.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            StoreError::Unavailable(_) | StoreError::Slow(_) | StoreError::Raced(_)
        )
    }

    /// Whether the values of a statement are to blame, so that repeating it is in vain and doing without them is not:
    /// a value that does not encode, data exceptions, violated constraints, values beyond a limit.
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
                Kind::Gone => StoreError::Unavailable(sentence(database.as_ref())),
                Kind::Slow => StoreError::Slow(sentence(database.as_ref())),
                Kind::Raced => StoreError::Raced(sentence(database.as_ref())),
                Kind::LeaseLost => StoreError::LeaseLost(sentence(database.as_ref())),
                Kind::Behind => StoreError::Behind(sentence(database.as_ref())),
                Kind::ClockOff => StoreError::ClockOff(sentence(database.as_ref())),
                Kind::KeyTaken => StoreError::KeyTaken(sentence(database.as_ref())),
                Kind::Refused => StoreError::Refused(sentence(database.as_ref())),
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

/// Whether the connection this error came over is gone, and with it whatever was under way.
pub(crate) fn connection_is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(database) => matches!(kind_of(database.as_ref()), Kind::Gone),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        _ => false,
    }
}

enum Kind {
    Gone,
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
        Some("57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04" | "53300") => Kind::Gone,
        Some(code) if code.starts_with("08") => Kind::Gone,
        Some("57014") => Kind::Slow,
        Some("40001" | "40P01" | "55P03") => Kind::Raced,
        Some("23505") if error.constraint() == Some(KEYS_CONSTRAINT) => Kind::Raced,
        Some(LEASE_LOST) => Kind::LeaseLost,
        Some(BEHIND) => Kind::Behind,
        Some(CLOCK_OFF) => Kind::ClockOff,
        Some(KEY_TAKEN) => Kind::KeyTaken,
        // Not allowed; no such role or a wrong password.
        Some("42501" | "28000" | "28P01") => Kind::Refused,
        _ => Kind::Other,
    }
}

fn sentence(error: &dyn DatabaseError) -> String {
    let hint = error
        .try_downcast_ref::<PgDatabaseError>()
        .and_then(PgDatabaseError::hint);
    match hint {
        Some(hint) => format!("{} ({hint})", error.message()),
        None => error.message().to_owned(),
    }
}

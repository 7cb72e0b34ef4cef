//! The keys that sign workers' callbacks. The dispatcher signs with them, the callback service
//! verifies.

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use servo_model::presign::{KeyError, KeyRing, SigningKey};

/// `[[…signing_keys]]`: the first key signs, all keys verify. To rotate, put a new key first, and
/// remove the old key once everything signed with it has expired.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct SigningKeys(Vec<Key>);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    kid: String,
    /// At least 32 random bytes.
    secret: SecretString,
}

/// The reason why the keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadKeys {
    #[error("is empty; name at least one key with its kid and secret")]
    None,
    #[error("{0}")]
    Key(#[from] KeyError),
}

impl SigningKeys {
    /// Returns the id and the bytes of the signing key.
    pub fn current(&self) -> Option<(&str, &[u8])> {
        self.0
            .first()
            .map(|key| (key.kid.as_str(), key.secret.expose_secret().as_bytes()))
    }

    pub fn ring(&self) -> Result<KeyRing, BadKeys> {
        let key = |key: &Key| SigningKey::new(&key.kid, key.secret.expose_secret().as_bytes());
        let mut keys = self
            .0
            .iter()
            .map(key)
            .collect::<Result<Vec<_>, _>>()?
            .into_iter();
        let current = keys.next().ok_or(BadKeys::None)?;
        Ok(KeyRing::new(current, keys)?)
    }
}

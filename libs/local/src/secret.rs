//! Secrets that are created on first use and stored in files that only the owner can read.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use rand::Rng;
use rand::distr::Alphanumeric;

/// About 256 bits.
const SECRET_CHARACTERS: usize = 43;

/// The secret stored in `path`, or a new one with this prefix.
pub(crate) fn load_or_create_secret(path: &Path, prefix: &str) -> Result<String> {
    if let Ok(kept) = fs::read_to_string(path) {
        return Ok(kept.trim().to_owned());
    }
    let secret = format!("{prefix}{}", random_word(SECRET_CHARACTERS));
    write_private(path, &secret).with_context(|| format!("write {}", path.display()))?;
    Ok(secret)
}

pub(crate) fn random_word(length: usize) -> String {
    rand::rng()
        .sample_iter(Alphanumeric)
        .take(length)
        .map(char::from)
        .collect()
}

pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?
        .write_all(text.as_bytes())
}

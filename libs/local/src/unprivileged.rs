//! Postgres refuses to run as root. As root it gets a directory that an unprivileged user owns.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use nix::unistd::{Uid, User as Account};

use crate::child::{User, command};

/// The user that Postgres runs as: `None`, the current user, unless that is root.
pub(crate) fn user() -> Result<Option<User>> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let Some(account) = Account::from_name(name).context("look up an unprivileged user")? {
            return Ok(Some(User {
                uid: account.uid.as_raw(),
                gid: account.gid.as_raw(),
            }));
        }
    }
    anyhow::bail!(
        "Postgres refuses to run as root and this machine has neither a user `postgres` nor `nobody`: run as an ordinary user"
    )
}

/// Creates `dir` and gives it to `user`. If `user` may not enter it (a clone in root's home), a
/// directory with a stable name in the temporary directory replaces it.
pub(crate) fn prepare_dir(dir: &Path, user: Option<User>) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    let Some(user) = user else { return Ok(dir) };
    let owned = if may_enter(&dir, user)? {
        dir
    } else {
        substitute_dir(&dir)?
    };
    std::os::unix::fs::chown(&owned, Some(user.uid), Some(user.gid))
        .with_context(|| format!("give {} to the user that runs Postgres", owned.display()))?;
    Ok(owned)
}

fn may_enter(dir: &Path, user: User) -> Result<bool> {
    let parent = dir.parent().unwrap_or(dir);
    let mut test = command(Path::new("/usr/bin/test"), Some(user));
    test.arg("-x")
        .arg(parent)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(test.status().context("run `test`")?.success())
}

fn substitute_dir(dir: &Path) -> Result<PathBuf> {
    let name: String = dir
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let substitute = std::env::temp_dir().join(format!("servo{name}"));
    std::fs::create_dir_all(&substitute)
        .with_context(|| format!("create {}", substitute.display()))?;
    Ok(substitute)
}

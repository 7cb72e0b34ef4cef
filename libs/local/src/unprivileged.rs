//! Postgres refuses to run as root. As root we lend it a directory that an unprivileged user owns.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use nix::unistd::{Uid, User as Account};

use crate::child::command;

#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The user Postgres shall run as: nobody in particular when we are not root ourselves.
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

/// Makes `dir` and gives it to `user`. A directory below one that `user` may not enter (a clone in root's home)
/// is replaced by one in the temporary directory with a name that stays the same.
pub(crate) fn lend_dir(dir: &Path, user: Option<User>) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    let Some(user) = user else { return Ok(dir) };
    let lent = if may_enter(&dir, user)? {
        dir
    } else {
        substitute_for(&dir)?
    };
    std::os::unix::fs::chown(&lent, Some(user.uid), Some(user.gid))
        .with_context(|| format!("give {} to the user that runs Postgres", lent.display()))?;
    Ok(lent)
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

fn substitute_for(dir: &Path) -> Result<PathBuf> {
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

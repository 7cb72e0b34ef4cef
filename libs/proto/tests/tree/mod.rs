//! A temporary copy of `proto/` that a test may change.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Copies `proto/` to `to` and changes `before` to `after` in one of its files.
pub(crate) fn copy_and_change(to: &Path, file: &str, before: &str, after: &str) -> Result<()> {
    copy(&root().join("proto"), to)?;
    let file = to.join(file);
    let source = fs::read_to_string(&file)?;
    ensure!(
        source.contains(before),
        "{} no longer contains `{before}`; adapt the test",
        file.display()
    );
    fs::write(&file, source.replace(before, after)).context("write the changed file")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in from.read_dir()? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

//! What the end-to-end tests share.

use std::path::{Path, PathBuf};

pub(crate) use servo_tests::running::{Running, binaries};

/// The ids of all living processes that name `dir` on their command line or in their environment.
pub(crate) fn processes_naming(dir: &Path) -> Vec<u32> {
    let name = dir.to_str().unwrap().as_bytes();
    let names = |file: PathBuf| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(name.len()).any(|part| part == name)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    ids.filter(|id| {
        *id != own && ["cmdline", "environ"].iter().any(|file| names(format!("/proc/{id}/{file}").into()))
    })
    .collect()
}

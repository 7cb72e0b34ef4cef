//! Compiles a folder of proto files to descriptors, including comments, imports and extensions.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folders of our packages, relative to the root of the proto files.
const FOLDERS: [&str; 2] = ["servo/v1", "servo/mesh/v1"];

/// Compiles both packages under `root`.
pub(crate) fn compile(root: &Path) -> Result<protox::Compiler> {
    let mut compiler = protox::Compiler::new([root])?;
    // prost-build panics when an imported file is missing from the set.
    compiler.include_imports(true).include_source_info(true);
    for folder in FOLDERS {
        compiler.open_files(proto_files(&root.join(folder))?)?;
    }
    Ok(compiler)
}

// Sorted, so that two builds give the same bytes.
fn proto_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = folder
        .read_dir()
        .with_context(|| format!("read {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "proto") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

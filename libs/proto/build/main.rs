//! Compiles `proto/` without a protoc, rejects an API that violates its own rules, and writes the
//! generated code.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, bail};

mod compile;
#[path = "../src/access/rules.rs"]
#[expect(unreachable_pub, reason = "public in the crate that shares this file")]
mod rules;
mod scoped;

fn main() -> Result<()> {
    // Relative to the directory in which cargo runs this, so that a moved checkout with its build
    // directory still builds.
    let protos = Path::new("../../proto");
    let out = PathBuf::from(env::var_os("OUT_DIR").context("OUT_DIR is set by cargo")?);
    println!("cargo:rerun-if-changed={}", protos.display());
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=src/access/rules.rs");

    let api = compile::compile(protos)?;
    let pool = api.descriptor_pool();
    if let Err(faults) = rules::read_methods(&pool) {
        bail!(
            "proto/ breaks the rules of the API:\n  {}",
            faults.join("\n  ")
        );
    }
    fs::write(out.join("scoped.rs"), scoped::implementations(&pool))?;
    // Writes the encoding of protox, because encoding the typed set again would drop the
    // extensions.
    fs::write(
        out.join("descriptors.binpb"),
        api.encode_file_descriptor_set(),
    )?;
    generate(api.file_descriptor_set())
}

// Maps are ordered, so that a message always encodes to the same bytes: the ledger distinguishes a
// repeated event from a conflicting one by its body.
fn generate(files: prost_types::FileDescriptorSet) -> Result<()> {
    tonic_prost_build::configure()
        .generate_default_stubs(true)
        .btree_map(".servo")
        .bytes(".servo")
        .compile_fds(files)
        .context("generate the Rust code of proto/")
}

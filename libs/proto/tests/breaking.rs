//! A change that breaks clients fails `make lint`, which runs the same command.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};

mod tree;

const FILE: &str = "servo/v1/mesh.proto";
const MESH_FILE: &str = "servo/mesh/v1/scheduler.proto";
const MESH_FIELD: &str =
    "  // Runs that were accepted and have not started.\n  uint32 waiting = 2;\n";
const FIELD: &str = "  // Its release (\"0.1.0\").\n  string version = 3;\n";

#[test]
fn unchanged_api_passes() -> Result<()> {
    let output = breaking(FIELD, FIELD)?;
    ensure!(output.status.success(), "{}", output_text(&output));
    Ok(())
}

#[test]
fn deleted_field_is_reported() -> Result<()> {
    check(
        "",
        "field \"3\" with name \"version\" on message \"GetServerInfoResponse\" was deleted",
    )
}

#[test]
fn renumbered_field_is_reported() -> Result<()> {
    let moved = FIELD.replace("= 3;", "= 33;");
    check(
        &moved,
        "field \"3\" with name \"version\" on message \"GetServerInfoResponse\" was deleted",
    )
}

#[test]
fn retyped_field_is_reported() -> Result<()> {
    let retyped = FIELD.replace("string version", "uint32 version");
    check(
        &retyped,
        "Field \"3\" with name \"version\" on message \"GetServerInfoResponse\" changed type",
    )
}

#[test]
fn added_field_passes() -> Result<()> {
    let further = format!("{FIELD}  // Where it was built.\n  string build = 7;\n");
    let output = breaking(FIELD, &further)?;
    ensure!(output.status.success(), "{}", output_text(&output));
    Ok(())
}

#[test]
fn mesh_is_guarded_on_the_wire() -> Result<()> {
    let renamed = MESH_FIELD.replace("waiting", "queued");
    let output = mesh_breaking(&renamed)?;
    ensure!(output.status.success(), "{}", output_text(&output));
    let retyped = MESH_FIELD.replace("uint32", "string");
    let output = mesh_breaking(&retyped)?;
    let complaint = "with name \"waiting\" on message \"CountRunsResponse\" changed type";
    ensure!(!output.status.success(), "buf accepted it");
    ensure!(
        output_text(&output).contains(complaint),
        "{}",
        output_text(&output)
    );
    Ok(())
}

fn check(after: &str, complaint: &str) -> Result<()> {
    let output = breaking(FIELD, after)?;
    ensure!(!output.status.success(), "buf accepted it");
    ensure!(
        output_text(&output).contains(complaint),
        "`{}` does not say `{complaint}`",
        output_text(&output)
    );
    Ok(())
}

// Compares a copy of the API, changed in one place, with the committed baseline.
fn breaking(before: &str, after: &str) -> Result<Output> {
    run("buf.yaml", "baseline.binpb", FILE, (before, after))
}

fn mesh_breaking(after: &str) -> Result<Output> {
    run(
        "buf.mesh.yaml",
        "baseline_mesh.binpb",
        MESH_FILE,
        (MESH_FIELD, after),
    )
}

fn run(config: &str, baseline: &str, file: &str, (before, after): (&str, &str)) -> Result<Output> {
    let folder = tempfile::tempdir()?;
    tree::copy_and_change(&folder.path().join("proto"), file, before, after)?;
    std::fs::copy(tree::root().join(config), folder.path().join(config))?;
    let baseline = tree::root()
        .join("proto")
        .join(baseline)
        .canonicalize()
        .context("the baseline is committed")?;
    let mut command = Command::new(buf()?);
    command.current_dir(folder.path()).arg("breaking");
    command
        .args(["--config", config, "--against"])
        .arg(baseline);
    command.output().context("run buf")
}

fn output_text(output: &Output) -> String {
    [output.stdout.as_slice(), output.stderr.as_slice()]
        .map(String::from_utf8_lossy)
        .concat()
}

fn buf() -> Result<PathBuf> {
    if let Some(named) = env::var_os("SERVO_BUF") {
        return Ok(named.into());
    }
    let on_path = env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join("buf"))
        .collect();
    let bootstrapped = vec![tree::root().join(".venv/bin/buf")];
    match [on_path, bootstrapped]
        .concat()
        .into_iter()
        .find(|path: &PathBuf| path.is_file())
    {
        Some(found) => Ok(found),
        None => bail!(
            "buf is neither in SERVO_BUF, nor on PATH, nor in .venv/bin; run `make bootstrap`"
        ),
    }
}

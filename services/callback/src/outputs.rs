//! Where outputs lie, and the reading of their commit markers there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::presign::CallbackPath;
use servo_proto::v1;

use crate::core::{self, MARKER, NotCommitted};

/// A marker says who wrote what; the data lies beside it.
const MARKER_BYTES_MAX: u64 = 64 * 1024;

/// The place below which workers write; the dispatcher names folders in it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Outputs {
    base: Arc<str>,
    reads: Reads,
}

/// How the things below the base are read.
#[derive(Debug, Clone)]
enum Reads {
    Directory(Arc<Path>),
    /// No base is set.
    Nothing,
}

/// Why a base cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is no folder that can be read here: write file:// and an absolute path, as in dispatcher.output_base"
)]
pub(crate) struct BadBase(String);

impl Outputs {
    pub(crate) fn new(base: &str) -> Result<Outputs, BadBase> {
        let directory = base
            .strip_prefix("file://")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let reads = match directory {
            Some(directory) => Reads::Directory(directory.into()),
            None if base.is_empty() => Reads::Nothing,
            None => return Err(BadBase(base.to_owned())),
        };
        Ok(Outputs {
            base: base.into(),
            reads,
        })
    }

    /// Whether everything that the attempt says it wrote is committed.
    pub(crate) async fn check(
        &self,
        of: &CallbackPath,
        outputs: &[v1::Output],
    ) -> Result<(), Error> {
        for (index, output) in outputs.iter().enumerate() {
            let parts = core::folder(&self.base, &output.uri, of).map_err(|elsewhere| {
                Error::bad_field(format!("outputs[{index}].uri"), elsewhere.to_string())
            })?;
            let place = format!("{}/{MARKER}", output.uri.trim_end_matches('/'));
            let marker = self.read(&parts).await?;
            let checked = match marker {
                Some(marker) => {
                    core::check(&place, &marker, &output.commit_digest, &of.run, &of.attempt)
                }
                None => Err(NotCommitted::Missing(place)),
            };
            checked.map_err(|fault| refusal(index, &fault))?;
        }
        Ok(())
    }

    /// The marker in a folder, if there is one.
    async fn read(&self, parts: &[&str]) -> Result<Option<Vec<u8>>, Error> {
        let Reads::Directory(directory) = &self.reads else {
            let told = "outputs cannot be checked here: set callback.output_base to what dispatcher.output_base is";
            return Err(Error::new(Reason::OutputNotCommitted, told));
        };
        let file = parts
            .iter()
            .fold(directory.to_path_buf(), |path, part| path.join(part))
            .join(MARKER);
        let about = match tokio::fs::metadata(&file).await {
            Ok(about) => about,
            Err(error) if is_absent(error.kind()) => return Ok(None),
            Err(error) => return Err(unreadable(&error)),
        };
        // What never ends or is no file at all is as good as none.
        if !about.is_file() || about.len() > MARKER_BYTES_MAX {
            return Ok(None);
        }
        tokio::fs::read(&file)
            .await
            .map(Some)
            .map_err(|error| unreadable(&error))
    }
}

fn is_absent(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
    )
}

fn unreadable(error: &std::io::Error) -> Error {
    Error::new(
        Reason::DependencyUnavailable,
        format!("the commit marker cannot be read ({error}); repeat the call"),
    )
}

fn refusal(index: usize, fault: &NotCommitted) -> Error {
    let field = match fault {
        NotCommitted::OtherDigest { .. } => format!("outputs[{index}].commit_digest"),
        _ => format!("outputs[{index}].uri"),
    };
    let told = fault.to_string();
    Error::new(Reason::OutputNotCommitted, format!("{field}: {told}")).and_bad_field(field, told)
}

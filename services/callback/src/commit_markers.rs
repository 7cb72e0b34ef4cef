//! Reading the commit markers of outputs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::presign::CallbackPath;
use servo_proto::v1 as pb;

use crate::core::{self, MARKER, NotCommitted};

/// A marker only identifies its writer; the data is in other files.
const MARKER_BYTES_MAX: u64 = 64 * 1024;

/// The base folder of all outputs; the dispatcher chooses the folders below it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct CommitMarkers {
    base: Arc<str>,
    storage: Storage,
}

/// How files below the base are read.
#[derive(Debug, Clone)]
enum Storage {
    Directory(Arc<Path>),
    /// No base is configured.
    None,
}

/// Why a base cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not a folder that can be read here: set it to file:// and an absolute path, or leave it out"
)]
pub(crate) struct InvalidBase(String);

impl CommitMarkers {
    pub(crate) fn new(base: &str) -> Result<CommitMarkers, InvalidBase> {
        let directory = base
            .strip_prefix("file://")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let storage = match directory {
            Some(directory) => Storage::Directory(directory.into()),
            None if base.is_empty() => Storage::None,
            None => return Err(InvalidBase(base.to_owned())),
        };
        Ok(CommitMarkers {
            base: base.into(),
            storage,
        })
    }

    /// Checks that every output that the attempt reports is committed.
    pub(crate) async fn check(
        &self,
        path: &CallbackPath,
        outputs: &[pb::Output],
    ) -> Result<(), Error> {
        for (index, output) in outputs.iter().enumerate() {
            let parts = core::output_folder(&self.base, &output.uri, path).map_err(|outside| {
                Error::bad_field(format!("outputs[{index}].uri"), outside.to_string())
            })?;
            let uri = format!("{}/{MARKER}", output.uri.trim_end_matches('/'));
            let marker = self.read(&parts).await?;
            let checked = match marker {
                Some(marker) => core::check_marker(
                    &uri,
                    &marker,
                    &output.commit_digest,
                    &path.run,
                    &path.attempt,
                ),
                None => Err(NotCommitted::Missing(uri)),
            };
            checked.map_err(|fault| refusal(index, &fault))?;
        }
        Ok(())
    }

    /// Returns the marker in a folder, if there is one.
    async fn read(&self, parts: &[&str]) -> Result<Option<Vec<u8>>, Error> {
        let Storage::Directory(directory) = &self.storage else {
            let message = "outputs cannot be checked: set attempts.output_base";
            return Err(Error::new(Reason::OutputNotCommitted, message));
        };
        let file = parts
            .iter()
            .fold(directory.to_path_buf(), |folder, part| folder.join(part))
            .join(MARKER);
        let metadata = match tokio::fs::metadata(&file).await {
            Ok(metadata) => metadata,
            Err(error) if is_absent(error.kind()) => return Ok(None),
            Err(error) => return Err(unreadable(&error)),
        };
        // A device or an oversized file is treated as missing.
        if !metadata.is_file() || metadata.len() > MARKER_BYTES_MAX {
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
        format!("the commit marker cannot be read ({error}); retry"),
    )
}

fn refusal(index: usize, fault: &NotCommitted) -> Error {
    let field = match fault {
        NotCommitted::OtherDigest { .. } => format!("outputs[{index}].commit_digest"),
        _ => format!("outputs[{index}].uri"),
    };
    let message = fault.to_string();
    Error::new(Reason::OutputNotCommitted, format!("{field}: {message}"))
        .and_bad_field(field, message)
}

//! Tokens that live shortly, asked for before every call.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use http::HeaderValue;
use tonic::Status;

/// Where fresh tokens come from: a function, or a file that somebody keeps fresh. It is asked on the caller's thread, so
/// whatever takes long belongs behind a cache of its own.
#[derive(Clone)]
pub struct TokenSource(Arc<dyn Fn() -> io::Result<String> + Send + Sync>);

impl TokenSource {
    pub fn new(give: impl Fn() -> io::Result<String> + Send + Sync + 'static) -> TokenSource {
        TokenSource(Arc::new(give))
    }

    pub fn file(path: impl Into<PathBuf>) -> TokenSource {
        let path = path.into();
        TokenSource::new(move || std::fs::read_to_string(&path))
    }

    /// What goes into the request, or the refusal that the server would give to a caller without credentials.
    pub(crate) fn bearer(&self) -> Result<HeaderValue, Status> {
        let refused = |why: String| {
            Status::unauthenticated(format!("there is no token for this call: {why}"))
        };
        let token = (self.0)().map_err(|error| refused(error.to_string()))?;
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim()))
            .map_err(|_| refused("it holds more than visible ASCII characters".to_owned()))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// Never shows a secret.
impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tonic::Code;

    use super::*;

    #[test]
    fn every_call_gets_a_token_of_its_own() {
        let count = AtomicU32::new(0);
        let source =
            TokenSource::new(move || Ok(format!("t{}\n", count.fetch_add(1, Ordering::Relaxed))));
        let given: Vec<HeaderValue> = (0..2).map(|_| source.bearer().unwrap()).collect();
        assert_eq!(given, ["Bearer t0", "Bearer t1"]);
        assert!(given[0].is_sensitive());
    }

    #[test]
    fn without_a_token_the_call_is_refused_as_one_without_credentials() {
        for source in [
            TokenSource::file("/nowhere/token"),
            TokenSource::new(|| Ok("a\u{7}b".to_owned())),
        ] {
            let refusal = source.bearer().unwrap_err();
            assert_eq!(refusal.code(), Code::Unauthenticated);
            assert!(
                refusal
                    .message()
                    .starts_with("there is no token for this call: "),
                "{refusal}"
            );
        }
    }
}

//! Short-lived tokens, obtained before every call.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use http::HeaderValue;
use tonic::Status;

/// A source of tokens: a function, or a file that another process keeps up to date. It is called on
/// the caller's thread, so a slow source needs its own cache.
#[derive(Clone)]
pub struct TokenSource(Arc<dyn Fn() -> io::Result<String> + Send + Sync>);

impl TokenSource {
    pub fn new(source: impl Fn() -> io::Result<String> + Send + Sync + 'static) -> TokenSource {
        TokenSource(Arc::new(source))
    }

    pub fn file(path: impl Into<PathBuf>) -> TokenSource {
        let path = path.into();
        TokenSource::new(move || std::fs::read_to_string(&path))
    }

    /// The header for the request, or the refusal that a caller without credentials gets.
    pub(crate) fn bearer(&self) -> Result<HeaderValue, Status> {
        let refused = |why: String| {
            Status::unauthenticated(format!("there is no token for this call: {why}"))
        };
        let token = (self.0)().map_err(|error| refused(error.to_string()))?;
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim()))
            .map_err(|_| refused("it may contain only visible ASCII characters".to_owned()))?;
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
    fn every_call_gets_a_new_token() {
        let count = AtomicU32::new(0);
        let source =
            TokenSource::new(move || Ok(format!("t{}\n", count.fetch_add(1, Ordering::Relaxed))));
        let tokens: Vec<HeaderValue> = (0..2).map(|_| source.bearer().unwrap()).collect();
        assert_eq!(tokens, ["Bearer t0", "Bearer t1"]);
        assert!(tokens[0].is_sensitive());
    }

    #[test]
    fn call_without_a_token_is_refused_as_unauthenticated() {
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

//! The tenant wall: what a request is about must be open to whom it is made for. It stands before every handler,
//! so that no handler can forget it.

use http::Request;
use servo_proto::access::{Access, Method};
use servo_proto::scope::{self, ScopeKind};
use tonic::Status;
use tonic::body::Body;

use crate::caller::Caller;
use crate::error::{Error, Reason};
use crate::first_message::FirstMessage;

/// Reads what the first message says about tenant and workspace and compares it with the caller.
pub(super) async fn check(request: Request<Body>, method: &Method) -> Result<Request<Body>, Status> {
    let kind = scope::kind_of(&method.path).unwrap_or(ScopeKind::Unscoped);
    let Some(caller) =
        request.extensions().get::<Caller>().filter(|caller| concerns(method, caller)).cloned()
    else {
        return Ok(request);
    };
    if kind == ScopeKind::Unscoped {
        return Ok(request);
    }
    let (head, body) = request.into_parts();
    let first = FirstMessage::read(body).await?;
    let scope = scope::read(kind, &first.message)
        .map_err(|malformed| Error::new(Reason::InvalidArgument, malformed.to_string()))?;
    caller.admit(&scope)?;
    Ok(Request::from_parts(head, first.body))
}

/// Internal callers act for themselves, and a signature that the gateway passes on names its tenant itself.
fn concerns(method: &Method, caller: &Caller) -> bool {
    match method.access {
        Access::Permission(_) => true,
        Access::AttemptSignature => !caller.tenant.is_empty(),
        Access::Callers(_) | Access::Open => false,
    }
}

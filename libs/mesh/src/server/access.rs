//! Authorization: decides by the method's access rule and the peer's certificate.

use http::HeaderMap;
use servo_model::Service;
use servo_proto::access::{Access, Method};

use crate::caller::Caller;
use crate::error::{Error, Reason};
use crate::tls::PeerIdentity;

const PRESIGNED: &str = "servo-presigned";

/// Returns the caller of an admitted call, or the reason of the refusal.
pub(super) fn authorise(
    method: &Method,
    peer: &PeerIdentity,
    headers: &HeaderMap,
) -> Result<Caller, Error> {
    match &method.access {
        Access::Open => open(method, peer, headers),
        Access::Callers(services) => internal(method, services, peer),
        Access::Permission(_) => public(method, peer, headers),
        Access::AttemptSignature => signed(method, peer, headers),
    }
}

fn open(method: &Method, peer: &PeerIdentity, headers: &HeaderMap) -> Result<Caller, Error> {
    match peer {
        PeerIdentity::Service(Service::Gateway) => Ok(gateway_caller(peer, headers)),
        PeerIdentity::Service(_) | PeerIdentity::Worker { .. } => Ok(Caller::on_own_behalf(peer)),
        PeerIdentity::Other(_) | PeerIdentity::Anonymous => {
            Err(refused(method, peer, "identities of the mesh"))
        }
    }
}

fn internal(method: &Method, services: &[Service], peer: &PeerIdentity) -> Result<Caller, Error> {
    match peer {
        PeerIdentity::Service(service) if services.contains(service) => {
            Ok(Caller::on_own_behalf(peer))
        }
        _ => Err(refused(method, peer, &names(services))),
    }
}

fn public(method: &Method, peer: &PeerIdentity, headers: &HeaderMap) -> Result<Caller, Error> {
    let caller = match peer {
        PeerIdentity::Service(Service::Gateway) => {
            Caller::from_gateway(headers).ok_or_else(|| principal_missing(method))?
        }
        PeerIdentity::Worker { .. } => Caller::on_own_behalf(peer),
        _ => return Err(refused(method, peer, "the gateway and workers")),
    };
    caller.check_permission(method)?;
    Ok(caller)
}

/// The service verifies the signature itself, because it has the keys.
fn signed(method: &Method, peer: &PeerIdentity, headers: &HeaderMap) -> Result<Caller, Error> {
    let caller = match peer {
        PeerIdentity::Service(Service::Gateway) => gateway_caller(peer, headers),
        PeerIdentity::Worker { .. } => Caller::on_own_behalf(peer),
        _ => return Err(refused(method, peer, "the gateway and workers")),
    };
    if headers.contains_key(PRESIGNED) {
        return Ok(caller);
    }
    let message = format!(
        "{} needs the attempt's signature in the metadata {PRESIGNED}",
        method.path
    );
    Err(Error::new(Reason::SignatureInvalid, message))
}

fn gateway_caller(peer: &PeerIdentity, headers: &HeaderMap) -> Caller {
    Caller::from_gateway(headers).unwrap_or_else(|| Caller::on_own_behalf(peer))
}

fn refused(method: &Method, peer: &PeerIdentity, allowed: &str) -> Error {
    let message = format!("{} may be called by {allowed}, not by {peer}", method.path);
    Error::new(Reason::CallerNotAllowed, message)
        .with("method", &method.path)
        .with("peer", peer.to_string())
}

fn principal_missing(method: &Method) -> Error {
    let message = format!(
        "the gateway forwarded {} without a principal (servo-principal)",
        method.path
    );
    Error::new(Reason::CallerNotAllowed, message)
}

fn names(services: &[Service]) -> String {
    let names: Vec<_> = services.iter().map(|service| service.name()).collect();
    names.join(", ")
}

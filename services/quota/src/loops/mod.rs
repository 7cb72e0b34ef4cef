//! Background loops of the quota service.

pub(crate) mod expire_requests;
pub(crate) mod limits;
pub(crate) mod usage;

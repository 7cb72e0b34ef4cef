//! Repeats the first answer of a mutation to later requests with the same request id.

use prost::Message;
use servo_mesh::{Error, Reason};
use servo_model::Digest;
use servo_store::{TenantTx, Tx};

use super::errors::store_error;
use crate::store::{Scope, requests};

/// The request id of a mutation and the hash of its request.
pub(crate) struct RequestKey {
    pub(crate) request_id: String,
    pub(crate) body: Digest,
}

impl RequestKey {
    /// Returns the stored answer, if there is one. Fails when the id was used with another body.
    pub(crate) async fn first_answer<M: Message + Default>(
        &self,
        tx: &mut TenantTx,
        scope: &Scope,
    ) -> Result<Option<M>, Error> {
        let Some(first) = requests::find(tx, scope, &self.request_id)
            .await
            .map_err(store_error)?
        else {
            return Ok(None);
        };
        if first.body != self.body.as_bytes() {
            let message = "request_id was used before with another body; choose a new one";
            return Err(Error::new(Reason::RequestIdReused, message));
        }
        M::decode(first.answer.as_slice()).map(Some).map_err(|_| {
            Error::new(
                Reason::Internal,
                "the first answer to this request_id cannot be read",
            )
        })
    }

    /// Stores the answer for later repeats of the request.
    pub(crate) async fn store_answer(
        &self,
        tx: &mut Tx,
        scope: &Scope,
        answer: &impl Message,
    ) -> Result<(), Error> {
        let inserted = requests::insert(
            tx,
            scope,
            &self.request_id,
            &self.body,
            &answer.encode_to_vec(),
        )
        .await
        .map_err(store_error)?;
        if inserted {
            return Ok(());
        }
        Err(Error::new(
            Reason::RequestIdReused,
            "another call used the same request_id at the same time",
        ))
    }
}

//! `servo.v1.AccessService`: tenants, workspaces, API keys and roles. Methods that are not
//! implemented answer UNIMPLEMENTED.

mod who_am_i;

use servo_proto::v1 as pb;
use servo_proto::v1::access_service_server::AccessService;
use tonic::{Request, Response, Status};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Access;

#[tonic::async_trait]
impl AccessService for Access {
    async fn who_am_i(
        &self,
        request: Request<pb::WhoAmIRequest>,
    ) -> Result<Response<pb::WhoAmIResponse>, Status> {
        Ok(Response::new(who_am_i::who_am_i(request.extensions())?))
    }
}

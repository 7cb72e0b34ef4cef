use futures::StreamExt;
use servo_mesh::Reason;
use servo_model::Digest;
use servo_proto::v1::{
    ArtifactKind, CodeArtifact, DeployRequest, DownloadArtifactRequest, UploadArtifactRequest,
    UploadArtifactResponse, deploy_request,
};
use tonic::{Response, Status};

use crate::support::{
    TENANT, WORKSPACE, World, by_user, by_user_of, chain, deploy_request, refused,
};

async fn upload(
    world: &World,
    digest: &str,
    kind: ArtifactKind,
    chunks: &[&[u8]],
) -> Result<Response<UploadArtifactResponse>, Status> {
    let message = |chunk: &&[u8]| UploadArtifactRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        digest: digest.into(),
        kind: kind.into(),
        chunk: chunk.to_vec().into(),
    };
    let messages: Vec<UploadArtifactRequest> = chunks.iter().map(message).collect();
    world
        .client()
        .upload_artifact(by_user(futures::stream::iter(messages)))
        .await
}

fn download(tenant: &str, digest: &str, offset: u64) -> DownloadArtifactRequest {
    DownloadArtifactRequest {
        tenant: tenant.into(),
        workspace: WORKSPACE.into(),
        digest: digest.into(),
        offset,
    }
}

#[tokio::test]
async fn an_uploaded_artifact_is_downloaded_by_its_own_tenant_only() {
    let world = World::start().await;
    let (head, tail) = (vec![1u8; 1 << 20], vec![2u8; 1000]);
    let digest = Digest::of([head.as_slice(), tail.as_slice()].concat()).to_string();
    let archive = ArtifactKind::SourceArchive;
    let first = upload(&world, &digest, archive, &[&head, &tail])
        .await
        .unwrap()
        .into_inner();
    assert_eq!((first.byte_size, first.existed), ((1 << 20) + 1000, false));
    assert!(
        upload(&world, &digest, archive, &[&head, &tail])
            .await
            .unwrap()
            .into_inner()
            .existed
    );

    let mut client = world.client();
    let stream = client
        .download_artifact(by_user(download(TENANT, &digest, 1 << 20)))
        .await
        .unwrap();
    let messages: Vec<_> = stream
        .into_inner()
        .map(|message| message.unwrap())
        .collect()
        .await;
    assert_eq!(messages[0].total_size, (1 << 20) + 1000);
    let bytes: Vec<u8> = messages
        .iter()
        .flat_map(|message| message.chunk.to_vec())
        .collect();
    assert_eq!(bytes, tail);
    let foreign = client
        .download_artifact(by_user_of("other", download("other", &digest, 0)))
        .await;
    assert_eq!(
        servo_mesh::error::reason_of(&foreign.err().unwrap()),
        Some(Reason::ArtifactNotFound)
    );
}

#[tokio::test]
async fn bytes_with_another_digest_are_not_stored() {
    let world = World::start().await;
    let (digest, archive) = (
        Digest::of("something else").to_string(),
        ArtifactKind::SourceArchive,
    );
    refused(
        upload(&world, &digest, archive, &[b"bytes"]).await,
        Reason::DigestMismatch,
        "nothing was stored",
    );
    refused(
        upload(&world, "x", archive, &[b"bytes"]).await,
        Reason::InvalidField,
        "digest",
    );
    let kindless = upload(&world, &digest, ArtifactKind::Unspecified, &[b"bytes"]).await;
    refused(kindless, Reason::InvalidField, "kind");
    let large = vec![0u8; (1 << 20) + 1];
    refused(
        upload(&world, &digest, archive, &[&large]).await,
        Reason::MessageTooLarge,
        "a chunk has",
    );
    let left: Vec<_> = std::fs::read_dir(
        world
            .dir
            .path()
            .join("artifacts")
            .join(TENANT)
            .join(WORKSPACE),
    )
    .unwrap()
    .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn code_must_be_uploaded_before_it_is_deployed() {
    let world = World::start().await;
    let digest = Digest::of("code").to_string();
    let mut manifest = chain();
    let archive = ArtifactKind::SourceArchive;
    manifest.artifact = Some(CodeArtifact {
        digest: digest.clone(),
        kind: archive.into(),
        ..Default::default()
    });
    let mut client = world.client();
    let early = client
        .deploy(by_user(deploy_request("r", manifest.clone())))
        .await;
    refused(early, Reason::ArtifactNotFound, "upload it first");
    upload(&world, &digest, archive, &[b"code"]).await.unwrap();
    let deployment = client
        .deploy(by_user(deploy_request("r", manifest)))
        .await
        .unwrap()
        .into_inner()
        .deployment;
    assert_eq!(deployment.unwrap().artifact_digest, digest);
}

#[tokio::test]
async fn a_manifest_can_be_deployed_from_an_artifact() {
    let world = World::start().await;
    let json = br#"{"format": 1, "assets": [{"key": "n/a", "source": true}]}"#;
    let digest = Digest::of(json).to_string();
    let by_uri = |uri: String, manifest_digest: &str| DeployRequest {
        source: Some(deploy_request::Source::ManifestUri(uri)),
        manifest_digest: manifest_digest.into(),
        ..deploy_request("r", Default::default())
    };
    let mut client = world.client();
    let early = client
        .deploy(by_user(by_uri(format!("artifact:{digest}"), &digest)))
        .await;
    refused(early, Reason::ArtifactNotFound, "manifest_uri");
    upload(&world, &digest, ArtifactKind::Manifest, &[json])
        .await
        .unwrap();
    let other = Digest::of("other").to_string();
    let mixed = client
        .deploy(by_user(by_uri(format!("artifact:{digest}"), &other)))
        .await;
    refused(mixed, Reason::DigestMismatch, "different digests");
    let file = client
        .deploy(by_user(by_uri("file:///etc/passwd".into(), &digest)))
        .await;
    refused(file, Reason::InvalidField, "manifest_uri");
    let answer = client
        .deploy(by_user(by_uri(format!("artifact:{digest}"), &digest)))
        .await
        .unwrap();
    assert_eq!(answer.into_inner().deployment.unwrap().asset_count, 1);

    let broken = br#"{"format": 1, "assets": [{"key": 3}]}"#;
    let digest = Digest::of(broken).to_string();
    upload(&world, &digest, ArtifactKind::Manifest, &[broken])
        .await
        .unwrap();
    let broken = DeployRequest {
        request_id: "r2".into(),
        ..by_uri(format!("artifact:{digest}"), &digest)
    };
    refused(
        client.deploy(by_user(broken)).await,
        Reason::ManifestInvalid,
        "is not valid JSON of servo.v1.Manifest",
    );
}

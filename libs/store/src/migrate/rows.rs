//! Rows derived from the closed lists in libs/model: shards, writers of event types, lessees of
//! streams.

use servo_model::{EventType, Stream};
use sqlx::PgConnection;

use super::MigrateError;
use crate::ownership::{Reader, Role};

pub(super) async fn sync(tx: &mut PgConnection) -> Result<(), MigrateError> {
    sync_shards(tx).await?;
    sync_writers(tx).await?;
    sync_lessees(tx).await
}

async fn sync_shards(tx: &mut PgConnection) -> Result<(), MigrateError> {
    for stream in Stream::ALL {
        sqlx::query(include_str!("../sql/sync_shards.sql"))
            .bind(stream.code())
            .bind(stream.shard_count())
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

async fn sync_writers(tx: &mut PgConnection) -> Result<(), MigrateError> {
    let writers: Vec<(Role, EventType, &str)> = EventType::ALL
        .iter()
        .flat_map(|kind| kind.writers().iter().map(move |service| (*kind, *service)))
        .flat_map(|(kind, service)| {
            Reader::Both(service)
                .roles()
                .into_iter()
                .map(move |role| (role, kind, service.name()))
        })
        .collect();
    sqlx::query(include_str!("../sql/sync_writers.sql"))
        .bind(
            writers
                .iter()
                .map(|(role, ..)| role.name())
                .collect::<Vec<_>>(),
        )
        .bind(
            writers
                .iter()
                .map(|(_, kind, _)| kind.code())
                .collect::<Vec<_>>(),
        )
        .bind(
            writers
                .iter()
                .map(|(_, kind, _)| kind.stream().code())
                .collect::<Vec<_>>(),
        )
        .bind(
            writers
                .iter()
                .map(|(.., source)| *source)
                .collect::<Vec<_>>(),
        )
        .bind(
            writers
                .iter()
                .map(|(role, ..)| matches!(role, Role::Requests(_)))
                .collect::<Vec<_>>(),
        )
        .execute(tx)
        .await?;
    Ok(())
}

async fn sync_lessees(tx: &mut PgConnection) -> Result<(), MigrateError> {
    sqlx::query(include_str!("../sql/sync_lessees.sql"))
        .bind(Stream::ALL.map(|stream| Role::Loops(stream.owner()).name()))
        .bind(Stream::ALL.map(Stream::code))
        .execute(tx)
        .await?;
    Ok(())
}

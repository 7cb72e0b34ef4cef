//! The loop of a consumer.

use std::future::Future;
use std::time::Duration;

use crate::port::{Acknowledgement, BusError, EventBus, Message, Subscription};

/// The delay after the bus returned an error.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Handles messages until the future is dropped. Messages in progress are then delivered again to
/// the next consumer.
pub async fn consume<B, F, Fut>(bus: &B, subscription: &Subscription, mut handle: F)
where
    B: EventBus,
    F: FnMut(Message) -> Fut,
    Fut: Future<Output = Result<(), String>>,
{
    loop {
        if let Err(error) = pass(bus, subscription, &mut handle).await {
            tracing::warn!(subscription = subscription.name, %error, "failed to consume from the bus; retrying");
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

async fn pass<B, F, Fut>(
    bus: &B,
    subscription: &Subscription,
    handle: &mut F,
) -> Result<(), BusError>
where
    B: EventBus,
    F: FnMut(Message) -> Fut,
    Fut: Future<Output = Result<(), String>>,
{
    let batch = bus.receive(subscription).await?;
    let mut results = Vec::with_capacity(batch.messages.len());
    for message in &batch.messages {
        results.push(match handle(message.clone()).await {
            Ok(()) => Acknowledgement::Ack,
            Err(why) => Acknowledgement::Nack(why),
        });
    }
    bus.settle(subscription, batch, results).await
}

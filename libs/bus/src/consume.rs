//! The loop of a consumer.

use std::future::Future;
use std::time::Duration;

use crate::port::{BusError, EventBus, Message, Subscription, Verdict};

/// When the bus does not answer.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Digests messages until it is dropped. What is under way then comes again, to whoever reads next.
pub async fn consume<B, F, Fut>(bus: &B, subscription: &Subscription, mut digest: F)
where
    B: EventBus,
    F: FnMut(Message) -> Fut,
    Fut: Future<Output = Result<(), String>>,
{
    loop {
        if let Err(error) = pass(bus, subscription, &mut digest).await {
            tracing::warn!(subscription = subscription.name, %error, "the bus is tried again");
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }
}

async fn pass<B, F, Fut>(
    bus: &B,
    subscription: &Subscription,
    digest: &mut F,
) -> Result<(), BusError>
where
    B: EventBus,
    F: FnMut(Message) -> Fut,
    Fut: Future<Output = Result<(), String>>,
{
    let batch = bus.receive(subscription).await?;
    let mut verdicts = Vec::with_capacity(batch.messages.len());
    for message in &batch.messages {
        verdicts.push(match digest(message.clone()).await {
            Ok(()) => Verdict::Ack,
            Err(why) => Verdict::Nack(why),
        });
    }
    bus.settle(subscription, batch, verdicts).await
}

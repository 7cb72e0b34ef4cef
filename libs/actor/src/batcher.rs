//! An actor that runs the items of many callers in batches.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::task::{spawn, spawn_task};

/// Runs batches. One answer per item, in the order of the items.
pub trait BatchHandler: Send + 'static {
    type Item: Send + 'static;
    type Answer: Send + 'static;

    fn run(&mut self, items: Vec<Self::Item>) -> impl Future<Output = Vec<Self::Answer>> + Send;

    /// How much of a batch an item takes. One item and no bytes unless the handler knows better.
    fn weigh(_item: &Self::Item) -> Weight {
        Weight { items: 1, bytes: 0 }
    }

    /// Runs while nothing is queued, and is dropped when an item arrives: for handlers that keep a
    /// resource between batches and must return it when its owner asks.
    fn idle(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// The size of an item, or of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    pub items: usize,
    pub bytes: usize,
}

/// The bounds of a batcher.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The weight in items that may wait or run. A caller beyond it waits until others are
    /// answered, at most until its own deadline.
    pub queued_max: usize,
    /// The weight of one batch. An item that is heavier than this is a batch of its own.
    pub batch_max: Weight,
}

impl Limits {
    /// Batches are limited by the number of their items alone.
    pub const fn items(batch_max: usize, queued_max: usize) -> Limits {
        Limits {
            queued_max,
            batch_max: Weight {
                items: batch_max,
                bytes: usize::MAX,
            },
        }
    }
}

/// The process is stopping, or the handler gave no answer for this item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this instance is stopping; call again")]
pub struct Stopped;

/// The handle of a batching actor. Cheap to clone; the actor ends when the last handle is dropped
/// and everything queued is answered.
#[derive(Debug)]
pub struct Batcher<T, A> {
    inbox: mpsc::Sender<Queued<T, A>>,
    capacity: Arc<Semaphore>,
    queued_max: usize,
    weigh: fn(&T) -> Weight,
}

#[derive(Debug)]
struct Queued<T, A> {
    item: T,
    reply: oneshot::Sender<A>,
    /// Returned when the item is answered.
    _capacity: OwnedSemaphorePermit,
}

impl<T: Send + 'static, A: Send + 'static> Batcher<T, A> {
    /// Starts the actor with one batch at a time: while it runs, the next one gathers. There is no
    /// delay on purpose, so a lone caller does not wait.
    pub fn start<H>(name: &'static str, limits: Limits, mut handler: H) -> Batcher<T, A>
    where
        H: BatchHandler<Item = T, Answer = A>,
    {
        let (batcher, mut inbox) = Batcher::new::<H>(limits);
        spawn(name, async move {
            let mut held_over = None;
            loop {
                let first = match held_over.take() {
                    Some(first) => Some(first),
                    None => tokio::select! {
                        first = inbox.recv() => first,
                        () = handler.idle() => continue,
                    },
                };
                let Some(first) = first else { return };
                if first.reply.is_closed() {
                    continue;
                }
                let batch = gather::<H>(first, &mut inbox, &mut held_over, limits.batch_max);
                run(&mut handler, batch.await).await;
            }
        });
        batcher
    }

    /// Starts the actor with up to `concurrent_max` batches at a time, each run by a clone of the
    /// handler, for work that mostly waits for another process.
    pub fn start_concurrent<H>(
        name: &'static str,
        limits: Limits,
        concurrent_max: usize,
        handler: H,
    ) -> Batcher<T, A>
    where
        H: BatchHandler<Item = T, Answer = A> + Clone + Sync,
    {
        let (batcher, mut inbox) = Batcher::new::<H>(limits);
        spawn(name, async move {
            let running = Arc::new(Semaphore::new(concurrent_max));
            let mut held_over = None;
            loop {
                // The permit comes first: items gather while all batches are running.
                let Ok(permit) = running.clone().acquire_owned().await else {
                    return;
                };
                let first = match held_over.take() {
                    Some(first) => Some(first),
                    None => inbox.recv().await,
                };
                let Some(first) = first else { return };
                if first.reply.is_closed() {
                    continue;
                }
                let batch = gather::<H>(first, &mut inbox, &mut held_over, limits.batch_max).await;
                let mut handler = handler.clone();
                spawn_task(name, async move {
                    run(&mut handler, batch).await;
                    drop(permit);
                });
            }
        });
        batcher
    }

    fn new<H>(limits: Limits) -> (Batcher<T, A>, mpsc::Receiver<Queued<T, A>>)
    where
        H: BatchHandler<Item = T, Answer = A>,
    {
        // Every queued item holds at least one permit, so the channel is never full.
        let (inbox, items) = mpsc::channel(limits.queued_max);
        let batcher = Batcher {
            inbox,
            capacity: Arc::new(Semaphore::new(limits.queued_max)),
            queued_max: limits.queued_max,
            weigh: H::weigh,
        };
        (batcher, items)
    }

    /// Queues an item and waits for its answer. While the queue is full the caller waits for
    /// capacity; a caller that gives up before its batch begins is left out of it.
    pub async fn call(&self, item: T) -> Result<A, Stopped> {
        let permits = (self.weigh)(&item).items.clamp(1, self.queued_max);
        let permits = u32::try_from(permits).unwrap_or(u32::MAX);
        let capacity = self.capacity.clone().acquire_many_owned(permits);
        let (reply, answer) = oneshot::channel();
        let queued = Queued {
            item,
            reply,
            _capacity: capacity.await.map_err(|_| Stopped)?,
        };
        self.inbox.send(queued).await.map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }

    /// The weight in items that waits or runs now.
    pub fn queued(&self) -> usize {
        self.queued_max - self.capacity.available_permits()
    }
}

impl<T, A> Clone for Batcher<T, A> {
    fn clone(&self) -> Batcher<T, A> {
        Batcher {
            inbox: self.inbox.clone(),
            capacity: self.capacity.clone(),
            queued_max: self.queued_max,
            weigh: self.weigh,
        }
    }
}

/// Takes everything that is queued, up to the limit. The item that no longer fits opens the next
/// batch.
async fn gather<H: BatchHandler>(
    first: Queued<H::Item, H::Answer>,
    inbox: &mut mpsc::Receiver<Queued<H::Item, H::Answer>>,
    held_over: &mut Option<Queued<H::Item, H::Answer>>,
    limit: Weight,
) -> Vec<Queued<H::Item, H::Answer>> {
    // One turn of the runtime, not a delay: callers that were just answered and have more to do
    // can still join this batch.
    tokio::task::yield_now().await;
    let mut total = H::weigh(&first.item);
    let mut batch = vec![first];
    while let Ok(next) = inbox.try_recv() {
        if next.reply.is_closed() {
            continue;
        }
        let more = H::weigh(&next.item);
        total.items += more.items;
        total.bytes = total.bytes.saturating_add(more.bytes);
        if total.items > limit.items || total.bytes > limit.bytes {
            *held_over = Some(next);
            break;
        }
        batch.push(next);
    }
    batch
}

async fn run<H: BatchHandler>(handler: &mut H, batch: Vec<Queued<H::Item, H::Answer>>) {
    let mut items = Vec::with_capacity(batch.len());
    let mut replies = Vec::with_capacity(batch.len());
    for queued in batch {
        items.push(queued.item);
        replies.push((queued.reply, queued._capacity));
    }
    let answers = handler.run(items).await;
    debug_assert_eq!(answers.len(), replies.len(), "one answer per item");
    for ((reply, _capacity), answer) in replies.into_iter().zip(answers) {
        // A caller that went away does not need its answer.
        let _ = reply.send(answer);
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    /// Answers with the item and its batch, and waits to be released before each batch.
    #[derive(Clone)]
    struct Recorder {
        batches: Arc<Mutex<Vec<Vec<u32>>>>,
        gate: Arc<Semaphore>,
    }

    impl BatchHandler for Recorder {
        type Item = u32;
        type Answer = u32;

        async fn run(&mut self, items: Vec<u32>) -> Vec<u32> {
            self.batches.lock().unwrap().push(items.clone());
            self.gate.acquire().await.unwrap().forget();
            items.iter().map(|item| item * 10).collect()
        }

        fn weigh(item: &u32) -> Weight {
            Weight {
                items: 1,
                bytes: *item as usize,
            }
        }
    }

    fn gated() -> Recorder {
        Recorder {
            batches: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }

    async fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let wait = async {
            while !holds() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let timeout = tokio::time::timeout(Duration::from_secs(10), wait);
        timeout
            .await
            .unwrap_or_else(|_| panic!("waited for {what}"));
    }

    #[tokio::test]
    async fn items_gather_while_a_batch_runs_and_each_caller_gets_its_answer() {
        let recorder = gated();
        let batcher = Batcher::start("test", Limits::items(3, 100), recorder.clone());
        let call = |item| {
            let batcher = batcher.clone();
            tokio::spawn(async move { batcher.call(item).await })
        };
        let first = call(1);
        until("the first batch", || {
            recorder.batches.lock().unwrap().len() == 1
        })
        .await;
        let rest: Vec<_> = (2..=5).map(call).collect();
        until("four more items", || batcher.queued() == 5).await;
        recorder.gate.add_permits(3);
        assert_eq!(first.await.unwrap(), Ok(10));
        for (item, call) in (2..=5).zip(rest) {
            assert_eq!(call.await.unwrap(), Ok(item * 10));
        }
        let batches = recorder.batches.lock().unwrap().clone();
        assert_eq!(batches, [vec![1], vec![2, 3, 4], vec![5]]);
        assert_eq!(batcher.queued(), 0);
    }

    #[tokio::test]
    async fn a_batch_ends_before_it_is_too_heavy_and_a_heavy_item_goes_alone() {
        let recorder = gated();
        let limits = Limits {
            queued_max: 100,
            batch_max: Weight {
                items: 10,
                bytes: 50,
            },
        };
        let batcher = Batcher::start("test", limits, recorder.clone());
        let mut calls = Vec::new();
        for item in [1, 30, 20, 60, 5] {
            let queued = batcher.queued();
            calls.push(tokio::spawn({
                let batcher = batcher.clone();
                async move { batcher.call(item).await }
            }));
            until("the item", || batcher.queued() > queued).await;
            until("the first batch", || {
                !recorder.batches.lock().unwrap().is_empty()
            })
            .await;
        }
        recorder.gate.add_permits(5);
        for call in calls {
            assert!(call.await.unwrap().is_ok());
        }
        let batches = recorder.batches.lock().unwrap().clone();
        assert_eq!(batches, [vec![1], vec![30, 20], vec![60], vec![5]]);
    }

    #[tokio::test]
    async fn a_full_queue_makes_callers_wait() {
        let recorder = gated();
        let batcher = Batcher::start("test", Limits::items(1, 2), recorder.clone());
        let call = |item| {
            let batcher = batcher.clone();
            tokio::spawn(async move { batcher.call(item).await })
        };
        let (first, second) = (call(1), call(2));
        until("a full queue", || batcher.queued() == 2).await;
        let third = call(3);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!third.is_finished(), "there is no capacity for it");
        assert_eq!(batcher.queued(), 2);
        recorder.gate.add_permits(3);
        let answers = [first, second, third];
        for (call, expected) in answers.into_iter().zip([10, 20, 30]) {
            assert_eq!(call.await.unwrap(), Ok(expected));
        }
    }

    #[tokio::test]
    async fn a_caller_that_gave_up_is_left_out_of_the_batch() {
        let recorder = gated();
        let batcher = Batcher::start("test", Limits::items(10, 100), recorder.clone());
        let first = tokio::spawn({
            let batcher = batcher.clone();
            async move { batcher.call(1).await }
        });
        until("the first batch", || {
            recorder.batches.lock().unwrap().len() == 1
        })
        .await;
        let impatient = tokio::time::timeout(Duration::from_millis(5), batcher.call(2)).await;
        assert!(impatient.is_err());
        let third = tokio::spawn({
            let batcher = batcher.clone();
            async move { batcher.call(3).await }
        });
        until("the third item", || batcher.queued() == 3).await;
        recorder.gate.add_permits(1);
        assert_eq!(first.await.unwrap(), Ok(10));
        recorder.gate.add_permits(1);
        assert_eq!(third.await.unwrap(), Ok(30));
        assert_eq!(*recorder.batches.lock().unwrap(), [vec![1], vec![3]]);
    }

    #[tokio::test]
    async fn concurrent_batches_run_side_by_side_up_to_their_limit() {
        let recorder = gated();
        let limits = Limits::items(1, 100);
        let batcher = Batcher::start_concurrent("test", limits, 2, recorder.clone());
        let calls: Vec<_> = (1..=3)
            .map(|item| {
                let batcher = batcher.clone();
                tokio::spawn(async move { batcher.call(item).await })
            })
            .collect();
        until("two batches", || {
            recorder.batches.lock().unwrap().len() == 2
        })
        .await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(
            recorder.batches.lock().unwrap().len(),
            2,
            "the third one waits"
        );
        recorder.gate.add_permits(3);
        for call in calls {
            assert!(call.await.unwrap().is_ok());
        }
    }
}

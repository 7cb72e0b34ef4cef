//! Lists as streams of their entries.

use std::collections::VecDeque;
use std::future::Future;

use futures::stream::{self, Stream};
use tonic::Status;

use crate::error::Error;

/// Streams every entry of a list. `read` takes a page token (empty for the first page) and returns
/// the page's entries and the next token (empty after the last page). Pages are read on demand.
///
/// ```no_run
/// # use servo_client::{Client, api, pages};
/// # fn workers(client: Client) -> impl futures::Stream<Item = Result<api::Worker, servo_client::Error>> {
/// pages(move |page_token| {
///     let mut dispatcher = client.dispatcher();
///     async move {
///         let tenant = "acme".into();
///         let request = api::ListWorkersRequest { tenant, page_token, ..Default::default() };
///         let page = dispatcher.list_workers(request).await?.into_inner();
///         Ok((page.workers, page.next_page_token))
///     }
/// })
/// # }
/// ```
pub fn pages<T, F, Fut>(read: F) -> impl Stream<Item = Result<T, Error>>
where
    F: FnMut(String) -> Fut,
    Fut: Future<Output = Result<(Vec<T>, String), Status>>,
{
    let first = Pages {
        read,
        entries: VecDeque::new(),
        next: Some(String::new()),
    };
    stream::unfold(first, |mut pages| async move {
        loop {
            if let Some(entry) = pages.entries.pop_front() {
                return Some((Ok(entry), pages));
            }
            let token = pages.next.take()?;
            match (pages.read)(token).await {
                Ok((entries, next)) => {
                    pages.entries = entries.into();
                    pages.next = (!next.is_empty()).then_some(next);
                }
                Err(status) => return Some((Err(status.into()), pages)),
            }
        }
    })
}

struct Pages<T, F> {
    read: F,
    entries: VecDeque<T>,
    /// `None` after the last page, and after a failure.
    next: Option<String>,
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, TryStreamExt};

    use super::*;

    #[tokio::test]
    async fn entries_are_in_order_and_an_error_ends_the_stream() {
        let read = |token: String| async move {
            match token.as_str() {
                "" => Ok((vec![1, 2], "a".to_owned())),
                "a" => Ok((vec![], "b".to_owned())),
                _ => Ok((vec![3], String::new())),
            }
        };
        let all: Vec<i32> = pages(read).try_collect().await.unwrap();
        assert_eq!(all, [1, 2, 3]);
        let broken = |token: String| async move {
            if token.is_empty() {
                Ok((vec![1], "a".to_owned()))
            } else {
                Err(Status::internal("broken"))
            }
        };
        let seen: Vec<_> = pages(broken).map(|entry| entry.ok()).collect().await;
        assert_eq!(seen, [Some(1), None]);
    }
}

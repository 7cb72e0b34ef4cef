//! A call that has not been sent yet.

use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use tonic::Status;

use crate::client::Client;
use crate::error::Error;
use crate::pages::pages;

/// The future response to a call.
pub type ResponseFuture<T> = BoxFuture<'static, Result<T, Error>>;
/// The entries of a list, or the messages of a stream.
pub type ItemStream<T> = BoxStream<'static, Result<T, Error>>;

/// A call that is sent when it is awaited, or when its stream is read.
#[must_use = "it is made when it is awaited"]
pub struct Call<M, A> {
    client: Client,
    message: M,
    make: fn(Client, M) -> A,
}

impl<M, A> Call<M, A> {
    pub(super) fn new(client: Client, message: M, make: fn(Client, M) -> A) -> Call<M, A> {
        Call {
            client,
            message,
            make,
        }
    }

    /// Sets further fields of the request: `runs().with(|request| request.filter = "state =
    /// FAILED".into())`.
    pub fn with(mut self, change: impl FnOnce(&mut M)) -> Call<M, A> {
        change(&mut self.message);
        self
    }
}

impl<M, A: Future> IntoFuture for Call<M, A> {
    type Output = A::Output;
    type IntoFuture = A;

    fn into_future(self) -> A {
        (self.make)(self.client, self.message)
    }
}

impl<M, T> Call<M, ItemStream<T>> {
    pub fn stream(self) -> ItemStream<T> {
        (self.make)(self.client, self.message)
    }
}

/// Streams a list page by page; `read` gets the request and a page token.
pub(super) fn entries<M, T, F, Fut>(client: Client, message: M, read: F) -> ItemStream<T>
where
    M: Clone + Send + 'static,
    T: Send + 'static,
    F: Fn(Client, M, String) -> Fut + Send + 'static,
    Fut: Future<Output = Result<(Vec<T>, String), Status>> + Send + 'static,
{
    pages(move |page_token| read(client.clone(), message.clone(), page_token)).boxed()
}

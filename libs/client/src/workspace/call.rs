//! A call before it is made.

use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use tonic::Status;

use crate::client::Client;
use crate::error::Error;
use crate::pages::pages;

/// One answer.
pub type One<T> = BoxFuture<'static, Result<T, Error>>;
/// The entries of a list, or what comes over a stream, one by one.
pub type Many<T> = BoxStream<'static, Result<T, Error>>;

/// A call that is made when it is awaited, or when its stream is read.
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

    /// Says more, such as a comment or a filter: `runs().with(|asked| asked.filter = "state = FAILED".into())`.
    pub fn with(mut self, say: impl FnOnce(&mut M)) -> Call<M, A> {
        say(&mut self.message);
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

impl<M, T> Call<M, Many<T>> {
    pub fn stream(self) -> Many<T> {
        (self.make)(self.client, self.message)
    }
}

/// Every entry of a list, page by page: `read` gets the request and the token of the page.
pub(super) fn entries<M, T, F, Fut>(client: Client, message: M, read: F) -> Many<T>
where
    M: Clone + Send + 'static,
    T: Send + 'static,
    F: Fn(Client, M, String) -> Fut + Send + 'static,
    Fut: Future<Output = Result<(Vec<T>, String), Status>> + Send + 'static,
{
    pages(move |page_token| read(client.clone(), message.clone(), page_token)).boxed()
}

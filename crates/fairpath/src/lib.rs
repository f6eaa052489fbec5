//! Connections over several network paths at once: fast where the paths are separate, fair where they share a
//! bottleneck.
//!
//! An [`Endpoint`] dials and accepts. A [`Connection`] uses all interfaces there are, opens paths, watches them and goes
//! on over those that work. On it run [streams](Connection::open_bi): reliable bytes in order, which tokio reads and
//! writes. A stream belongs to no path, and nothing waits between streams. Where all paths are gone for a while, the
//! connection [is made again](Connection#when-all-paths-are-gone) and its streams go on.
//!
//! ```
//! use fairpath::{Endpoint, Identity};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! // One end is known by its fingerprint. Give that and the addresses to the other.
//! let server = Endpoint::builder().identity(Identity::generate()?).via(["127.0.0.1"]).bind()?;
//! let (addresses, fingerprint) = (server.addresses(), server.fingerprint().expect("it has an identity"));
//! let echo = tokio::spawn(async move {
//!     let connection = server.accept().await.expect("the endpoint is open");
//!     let (mut send, mut recv) = connection.accept_bi().await?;
//!     tokio::io::copy(&mut recv, &mut send).await?;
//!     send.shutdown().await?;
//!     // The other end may leave as soon as it has everything.
//!     let _ = send.arrived().await;
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//! });
//!
//! // The other end uses two addresses here; without `via`, all interfaces that there are.
//! let client = Endpoint::builder().via(["127.0.0.1", "127.0.0.2"]).bind()?;
//! let connection = client.connect(addresses, fingerprint).await?;
//! let (mut send, mut recv) = connection.open_bi().await?;
//! send.write_all(b"over all paths").await?;
//! send.shutdown().await?;
//! let mut answer = Vec::new();
//! recv.read_to_end(&mut answer).await?;
//! assert_eq!(answer, b"over all paths");
//! for path in connection.paths() {
//!     println!("{}: {}, {} acknowledged", path.name, path.state, path.acked);
//! }
//! connection.close(0, "done").await;
//! # echo.await??;
//! # Ok(()) }
//! ```
//!
//! # For those who know quinn
//!
//! - `open_bi`, `accept_bi`, `SendStream` and `RecvStream` are as there, with one trap: a `SendStream` that is dropped
//!   before [`finish`](SendStream::finish) is reset, not finished. [`SendStream::arrived`] is `stopped` there.
//! - A stream has both directions; drop the one that is not wanted. The peer sees a stream when its first bytes come.
//!   Streams have no priorities: those that send little go first, the others take turns.
//! - [`Endpoint::accept`] hands out connections whose handshake is complete. There is no 0-RTT.
//! - [`Connection::close`] is to be awaited, and nothing like `wait_idle` is needed after it.
//! - There is no idle timeout and no keep-alive to set: a connection without data stays open as long as the peer answers.
//! - A certificate is known by its [`Fingerprint`], without an authority, or by [`Trust::authorities`].
//! - Streams are Fairpath's own and travel in DATAGRAM frames, so both ends are Fairpath's.
//! - An endpoint has a socket for each interface, which come and go with them. There is no migration to think of.
//! - Beside streams there are [messages](Connection::send_message), [records](Connection::send_record),
//!   [datagrams](Connection::send_datagram) and [live packets](live).
//!
//! # Units
//!
//! Amounts are [`Amount`]s of bytes, rates are [`Bitrate`]s of bits per second, times are
//! [`Duration`](std::time::Duration)s.
//!
//! # Runtime
//!
//! Everything needs a tokio runtime with its timer and I/O.

mod acceptor;
mod algorithm;
mod connection;
mod endpoint;
mod error;
mod event;
mod fingerprint;
#[cfg(feature = "internal")]
pub mod internal;
mod limits;
pub mod live;
mod path;
mod session;
mod stream;
mod trust;

pub use algorithm::{Congestion, Coupling, Detector, Scheduler, UnknownName};
pub use connection::{Connection, RECORD_MAX, Record, Stats};
pub use endpoint::{Builder, Endpoint};
pub use error::{Attempt, ConnectionError, Error, SendError, StreamError};
pub use event::{Event, Events};
#[doc(inline)]
pub use fairpath_engine::{Bitrate, ByteCount as Amount, TermsChange};
pub use fairpath_quic::{Allowance, PathControl};
pub use fingerprint::{BadFingerprint, Fingerprint};
pub use limits::StreamLimits;
pub use path::{Interface, Path, PathState, PathTerms, Sharing, interfaces};
pub use stream::{RecvStream, SendStream, StreamId};
pub use trust::{Identity, Trust};

/// The programs of the page that registries show, compiled as examples of documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

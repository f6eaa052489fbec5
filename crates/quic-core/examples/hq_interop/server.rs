//! The server's part of `hq-interop`: a request on a stream is answered on it with the contents of a file.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use fairpath_quic_core::Connection;
use noq_proto::{ConnectionHandle, Dir, StreamId};

use super::act::{Act, Acting};
use super::host::Role;

/// No request is longer, in bytes.
const REQUEST_MAX: usize = 4_096;

/// With this code a stream is ended that asked for what is not there.
const NOT_FOUND: u32 = 1;

/// How much of a file is read at a time: all clients wait meanwhile.
const PIECE: usize = 64 << 10;

/// How much of one file is handed to the stack before the others have their turn.
const TURN: usize = 16 * PIECE;

/// The state of one request and its response.
enum Exchange {
    /// It is still coming.
    Asking(Vec<u8>),
    /// This is left to send: what was read, and what is to be read.
    Answering(Bytes, File),
}

/// A file that is given out.
pub(crate) type File = Box<dyn Read>;

/// Finds the file of a name.
type Find = dyn Fn(&str) -> Option<File>;

/// Gives out files.
pub(crate) struct Server {
    find: Box<Find>,
    exchanges: BTreeMap<(ConnectionHandle, StreamId), Exchange>,
    /// The act on the first path of each connection.
    act: Option<Act>,
    acting: BTreeMap<ConnectionHandle, Acting>,
    /// A line on each act whose connection is over.
    pub(crate) verdicts: Vec<String>,
}

impl Server {
    /// A server of what `find` finds.
    pub(crate) fn new(find: impl Fn(&str) -> Option<File> + 'static) -> Self {
        let (exchanges, acting) = (BTreeMap::new(), BTreeMap::new());
        Self { find: Box::new(find), exchanges, act: None, acting, verdicts: Vec::new() }
    }

    /// Does this to the first path of each connection.
    pub(crate) fn acting(self, act: Option<Act>) -> Self {
        Self { act, ..self }
    }

    /// Goes on with one exchange; `None` where it is over.
    fn go_on(&self, exchange: Exchange, id: StreamId, quic: &mut noq_proto::Connection) -> Option<Exchange> {
        let (mut left, mut file) = match exchange {
            Exchange::Answering(left, file) => (left, file),
            Exchange::Asking(request) => match asked(request, id, quic) {
                Asked::Partly(request) => return Some(Exchange::Asking(request)),
                Asked::For(name) => match (self.find)(&name) {
                    Some(file) => (Bytes::new(), file),
                    None => return refuse(id, quic),
                },
                Asked::Nonsense => return refuse(id, quic),
            },
        };
        let mut stream = quic.send_stream(id);
        let mut handed_on = 0;
        loop {
            if left.is_empty() {
                match piece(&mut file) {
                    Ok(piece) if piece.is_empty() => break,
                    Ok(piece) => left = piece,
                    Err(_) => return refuse(id, quic),
                }
            }
            match stream.write(&left) {
                Ok(written) => drop(left.split_to(written)),
                Err(noq_proto::WriteError::Blocked) => return Some(Exchange::Answering(left, file)),
                // The client wants no more of it.
                Err(_) => return None,
            }
            handed_on += PIECE;
            if handed_on >= TURN {
                return Some(Exchange::Answering(left, file));
            }
        }
        // It fails only where the client wants no more of it.
        let _ = stream.finish();
        None
    }
}

impl Role for Server {
    const ACCEPTS: bool = true;

    fn act(&mut self, handle: ConnectionHandle, connection: &mut Connection, now: Instant) {
        // All streams are looked at each time, whatever happened on which.
        while connection.poll_event().is_some() {}
        if connection.close_reason().is_some() {
            return self.forget(handle);
        }
        if let Some(act) = self.act {
            self.acting.entry(handle).or_insert_with(|| Acting::new(act)).go_on(connection, now);
        }
        let quic = connection.quic();
        while let Some(id) = quic.streams().accept(Dir::Bi) {
            self.exchanges.insert((handle, id), Exchange::Asking(Vec::new()));
        }
        let own: Vec<_> = self.exchanges.keys().filter(|(of, _)| *of == handle).copied().collect();
        for key in own {
            let Some(exchange) = self.exchanges.remove(&key) else { continue };
            if let Some(exchange) = self.go_on(exchange, key.1, quic) {
                self.exchanges.insert(key, exchange);
            }
        }
    }

    fn forget(&mut self, handle: ConnectionHandle) {
        self.exchanges.retain(|(of, _), _| *of != handle);
        self.verdicts.extend(self.acting.remove(&handle).map(|acting| acting.judge()));
    }
}

/// The next piece of a file; an empty one at its end.
fn piece(file: &mut File) -> std::io::Result<Bytes> {
    let mut piece = Vec::with_capacity(PIECE);
    file.take(PIECE as u64).read_to_end(&mut piece)?;
    Ok(piece.into())
}

/// A request as far as it was parsed.
enum Asked {
    Partly(Vec<u8>),
    For(String),
    Nonsense,
}

fn asked(mut request: Vec<u8>, id: StreamId, quic: &mut noq_proto::Connection) -> Asked {
    let mut stream = quic.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return Asked::Nonsense };
    let is_whole = loop {
        match chunks.next(REQUEST_MAX + 1 - request.len().min(REQUEST_MAX)) {
            Ok(Some(chunk)) => request.extend_from_slice(&chunk.bytes),
            Ok(None) => break true,
            Err(noq_proto::ReadError::Blocked) => break false,
            Err(noq_proto::ReadError::Reset(_)) => return Asked::Nonsense,
        }
        if request.len() > REQUEST_MAX {
            return Asked::Nonsense;
        }
    };
    // The result only says whether flow-control frames are due. The next packet carries them.
    let _ = chunks.finalize();
    if !is_whole {
        return Asked::Partly(request);
    }
    let text = std::str::from_utf8(&request).ok().and_then(|text| text.trim_end().strip_prefix("GET "));
    text.map_or(Asked::Nonsense, |name| Asked::For(name.trim().to_owned()))
}

fn refuse(id: StreamId, quic: &mut noq_proto::Connection) -> Option<Exchange> {
    // They fail only where the client has ended the stream already.
    let _ = quic.send_stream(id).reset(NOT_FOUND.into());
    let _ = quic.recv_stream(id).stop(NOT_FOUND.into());
    None
}

/// The file that `name` stands for under `root`; `None` where it leads out of it.
pub(crate) fn under(root: &Path, name: &str) -> Option<PathBuf> {
    let name = Path::new(name.trim_start_matches('/'));
    name.components().all(|part| matches!(part, Component::Normal(_))).then(|| root.join(name))
}

//! The client's part of `hq-interop`, in the four cases of multipath.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairpath_quic_core::pairs::{Candidates, Pair};
use fairpath_quic_core::{Connection, Event, Interface, PATHS_MAX, PathReport, PathState};
use noq_proto::{ConnectionHandle, Dir, StreamId};

use super::host::{HQ, Role};

/// How long more paths are awaited after the last was opened: a challenge may be lost, and asked
/// for again at growing intervals.
const OPEN_WITHIN: Duration = Duration::from_secs(3);

/// The bytes received before a path is closed or made a backup, so that slow start is mostly over.
const ACT_AFTER: u64 = 500_000;

/// A path that received at least this many bytes has carried data; control frames alone are fewer.
const CARRIED: u64 = 20_000;

/// The time in which data in flight on a demoted path still arrives.
const GRACE: Duration = Duration::from_millis(500);

/// The test case that runs beside fetching files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Case {
    /// A path is opened from each address.
    Handshake,
    /// All of them carry data.
    Transfer,
    /// The first is closed in the middle; the others bring the rest.
    Abandon,
    /// The first becomes a backup in the middle; data leaves it, and it stays open.
    Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Handshake,
    /// Paths are opened once the peer has our connection ids for them: some peers fail where a challenge comes
    /// before the ids of its path.
    Settling,
    Opening {
        until: Instant,
        open: usize,
    },
    Fetching,
    Over,
}

/// A file as far as it was received.
struct Fetch {
    name: String,
    data: Vec<u8>,
}

/// Fetches files.
pub(crate) struct Client {
    case: Case,
    first: Pair,
    locals: Vec<Interface>,
    stage: Stage,
    wanted: Vec<String>,
    running: BTreeMap<StreamId, Fetch>,
    /// The files that are whole.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// How many bytes of files have come.
    came: u64,
    /// When the path was closed or kept back.
    pub(crate) acted: Option<Instant>,
    /// The paths' reports, taken [`GRACE`] after that.
    settled: Option<Vec<PathReport>>,
    /// The paths' reports when all files had arrived.
    pub(crate) paths: Vec<PathReport>,
    /// Remarks for a person on how it went.
    pub(crate) remarks: Vec<String>,
    /// The result of the case, once it is over.
    pub(crate) verdict: Option<Result<(), String>>,
}

impl Client {
    /// A client that connects from the first of the addresses.
    pub(crate) fn new(case: Case, locals: &[IpAddr], remote: SocketAddr, wanted: Vec<String>) -> Self {
        // Addresses alone say where a path begins here, and no subnet is known.
        let interface = |address: &IpAddr| Interface {
            name: address.to_string(),
            address: *address,
            twin: 0,
            prefix_bits: if address.is_ipv4() { 32 } else { 128 },
            unusable: None,
        };
        let locals: Vec<Interface> = locals.iter().map(interface).collect();
        Self {
            case,
            first: Pair { local: locals[0].clone(), remote },
            locals,
            stage: Stage::Handshake,
            wanted,
            running: BTreeMap::new(),
            files: BTreeMap::new(),
            came: 0,
            acted: None,
            settled: None,
            paths: Vec::new(),
            remarks: Vec::new(),
            verdict: None,
        }
    }

    /// The addresses here, by name.
    pub(crate) fn interfaces(&self) -> Vec<(String, IpAddr)> {
        self.locals.iter().map(|local| (local.name.clone(), local.address)).collect()
    }

    fn end(&mut self, verdict: Result<(), String>) {
        self.stage = Stage::Over;
        self.verdict.get_or_insert(verdict);
    }

    fn open(&mut self, connection: &mut Connection, now: Instant) {
        // A peer without multipath is none that a path could be opened to.
        let (offers, wanted) = (connection.quic().is_multipath_negotiated(), self.locals.len());
        if !offers && wanted > 1 {
            self.remarks.push(format!("the peer offers one path, no multipath: {wanted} were asked for"));
        }
        let locals = if offers { &self.locals[..] } else { &self.locals[..1] };
        let remotes = [self.first.remote];
        let candidates = Candidates::new(locals, &remotes, locals.len().min(PATHS_MAX as usize));
        connection.open_paths(candidates, &self.first, now);
        self.stage = if offers { Stage::Opening { until: now + OPEN_WITHIN, open: 1 } } else { Stage::Fetching };
    }

    fn await_paths(&mut self, connection: &mut Connection, (until, before): (Instant, usize), now: Instant) {
        let open = connection.paths().iter().filter(|path| path.state == PathState::Open).count();
        let wanted = self.locals.len();
        if open == wanted {
            self.stage = Stage::Fetching;
        } else if open > before {
            self.stage = Stage::Opening { until: now + OPEN_WITHIN, open };
        } else if now > until {
            let paths = if open == 1 { "1 path".to_owned() } else { format!("{open} paths") };
            self.remarks.push(format!("going on over {paths}: {wanted} were asked for, and the peer takes no more"));
            self.stage = Stage::Fetching;
        }
    }

    fn ask(&mut self, quic: &mut noq_proto::Connection) -> Result<(), String> {
        while let Some(name) = self.wanted.last() {
            let Some(id) = quic.streams().open(Dir::Bi) else { return Ok(()) };
            let request = format!("GET {name}\r\n");
            let mut stream = quic.send_stream(id);
            let written = stream.write(request.as_bytes()).map_err(|error| format!("{name}: {error}"))?;
            if written < request.len() {
                return Err(format!("{name}: the peer takes only {written} bytes of the request"));
            }
            stream.finish().map_err(|error| format!("{name}: {error}"))?;
            let name = self.wanted.pop().unwrap_or_default();
            self.running.insert(id, Fetch { name, data: Vec::new() });
        }
        Ok(())
    }

    fn read(&mut self, quic: &mut noq_proto::Connection) -> Result<(), String> {
        let ids: Vec<StreamId> = self.running.keys().copied().collect();
        for id in ids {
            let Some(fetch) = self.running.get_mut(&id) else { continue };
            let mut stream = quic.recv_stream(id);
            let mut chunks = stream.read(true).map_err(|error| format!("{}: {error}", fetch.name))?;
            let is_whole = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        self.came += chunk.bytes.len() as u64;
                        fetch.data.extend_from_slice(&chunk.bytes);
                    }
                    Ok(None) => break true,
                    Err(noq_proto::ReadError::Blocked) => break false,
                    Err(error) => return Err(format!("{}: {error}", fetch.name)),
                }
            };
            // The result only says whether flow-control frames are due. The next packet carries them.
            let _ = chunks.finalize();
            if is_whole && let Some(Fetch { name, data }) = self.running.remove(&id) {
                self.files.insert(name, data);
            }
        }
        Ok(())
    }

    /// Closes the first path or keeps it back, when it is time.
    fn intervene(&mut self, connection: &mut Connection, now: Instant) -> Result<(), String> {
        if let Some(acted) = self.acted {
            if self.settled.is_none() && now > acted + GRACE {
                connection.measure(now);
                self.settled = Some(connection.paths());
            }
            return Ok(());
        }
        let has_carried = |path: &PathReport| path.received.get() >= CARRIED;
        if self.came < ACT_AFTER || !connection.paths().iter().all(has_carried) {
            return Ok(());
        }
        let Pair { local, remote } = &self.first;
        let is_done = match self.case {
            Case::Handshake | Case::Transfer => return Ok(()),
            Case::Abandon | Case::Status if connection.paths().len() < 2 => return Ok(()),
            Case::Abandon => connection.close_path(local.address, *remote, now),
            Case::Status => connection.set_path_backup(local.address, *remote, true, now),
        };
        self.acted = Some(now);
        if is_done { Ok(()) } else { Err(format!("the path from {} is not open", local.address)) }
    }

    fn fetch(&mut self, connection: &mut Connection, now: Instant) -> Result<(), String> {
        self.ask(connection.quic())?;
        self.read(connection.quic())?;
        self.intervene(connection, now)?;
        if self.wanted.is_empty() && self.running.is_empty() {
            connection.measure(now);
            self.paths = connection.paths();
            self.end(self.judge());
            connection.close(0, Bytes::new(), now);
        }
        Ok(())
    }

    /// Whether the case went as it should.
    fn judge(&self) -> Result<(), String> {
        let received = |paths: &[PathReport], at: usize| paths.get(at).map_or(0, |path| path.received.get());
        let idle = self.paths.iter().find(|path| path.received.get() < CARRIED);
        match (self.case, idle) {
            (Case::Handshake, _) => return Ok(()),
            (Case::Abandon | Case::Status, _) if self.paths.len() < 2 => {
                return Err("there was one path: none could be given up for another".to_owned());
            }
            (_, Some(path)) => return Err(format!("the path from {} brought only {}", path.interface, path.received)),
            (Case::Transfer, None) => return Ok(()),
            (Case::Abandon | Case::Status, None) => {}
        }
        // The first path of the connection is the first of the reports.
        let state = self.paths.first().map(|path| path.state);
        match (self.case, state, &self.settled) {
            (_, _, None) => Err(format!(
                "all had come before the path was given up, or less than {GRACE:?} later: take larger files"
            )),
            (Case::Abandon, Some(PathState::Closed), _) => Ok(()),
            (Case::Abandon, state, _) => Err(format!("the path that was closed is {state:?}")),
            (_, Some(PathState::Closed), _) => Err("the backup path was closed".to_owned()),
            (_, _, Some(settled)) => {
                let grew = |at: usize| received(&self.paths, at) - received(settled, at);
                let (backup, others) = (grew(0), (1..self.paths.len()).map(grew).sum::<u64>());
                // A backup carries little more than keep-alives; a path in use would carry a large share.
                let is_free = backup < CARRIED.max(others / 20);
                is_free.then_some(()).ok_or_else(|| format!("the backup path brought {backup} bytes, others {others}"))
            }
        }
    }
}

impl Role for Client {
    const ACCEPTS: bool = false;

    fn act(&mut self, _handle: ConnectionHandle, connection: &mut Connection, now: Instant) {
        match self.stage {
            // Nothing is on its way any more, connection ids included.
            Stage::Settling if connection.snapshots(now).iter().all(|path| path.in_flight.get() == 0) => {
                self.open(connection, now);
            }
            Stage::Opening { until, open } => self.await_paths(connection, (until, open), now),
            Stage::Fetching => {
                if let Err(error) = self.fetch(connection, now) {
                    connection.close(1, Bytes::from(error.clone()), now);
                    self.end(Err(error));
                }
            }
            Stage::Handshake | Stage::Settling | Stage::Over => {}
        }
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Connected => self.stage = Stage::Settling,
                Event::Closed(reason) => self.end(Err(HQ.words_for(&reason))),
                _ => {}
            }
        }
        // Nothing is asked beforehand: whether a path leads anywhere, its challenge finds out.
        for pair in connection.questions(now) {
            connection.on_answer(pair.local.local(), pair.remote, Ok(()));
        }
    }
}

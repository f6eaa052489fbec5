//! One connection at one end: what its application sends and receives, and what may never happen to it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairpath_core::PathId;
use fairpath_quic_core::bulk::Record;
use fairpath_quic_core::streams::{StreamEvent, StreamsToken};
use fairpath_quic_core::{ChannelId, Connection, Event, HeldData, PathNotice, PathReport, PathSnapshot, PathState};
use noq_proto::ConnectionHandle;

/// The data of a record of bulk.
const RECORD: usize = 64 << 10;

/// Limit on a burst of packets beyond a window.
const BURST: fairpath_core::ByteCount = fairpath_core::ByteCount::new(16 * 1_472);

/// Probe timeouts of the slowest path, but at least `STRAY_MIN`, in which data on an unwatched path
/// is found lost.
const STRAY_ANSWERS: u32 = 3;
const STRAY_MIN: Duration = Duration::from_secs(1);

/// Limit on the time that counts between two checks: an end that lives says something every second.
const STEP_MAX: Duration = Duration::from_millis(1_500);

/// The state of a connection at one end.
pub(crate) struct Session {
    /// The connection, until the stack has forgotten it.
    pub(crate) handle: Option<ConnectionHandle>,
    /// The secret that sets the data of this connection apart from all others, once both ends know
    /// it.
    secret: Option<u64>,
    /// Why it ended.
    pub(crate) ended: Option<String>,
    unwritten: u64,
    written: u64,
    /// The bytes of bulk received.
    pub(crate) received: u64,
    arrived: BTreeSet<u64>,
    messages_sent: u64,
    /// How many messages came.
    pub(crate) messages: u64,
    /// The first broken invariant.
    pub(crate) violation: Option<String>,
    windows: Vec<Watched>,
    strays: Strays,
    /// Whether the path of an interface was reported open or closed; the newest report counts.
    told: BTreeMap<String, bool>,
    /// Events of streams, in order.
    pub(crate) streams: Vec<StreamEvent>,
    /// The streams that the peer asks for.
    pub(crate) asked: Option<StreamsToken>,
    /// Whether the streams are to be kept for another connection.
    pub(crate) is_lost: bool,
}

/// The largest window and overdue data that a path has had.
#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    largest: fairpath_core::ByteCount,
    overdue: fairpath_core::ByteCount,
}

impl Watched {
    /// Whether the window allows this much in flight.
    fn allows(
        &mut self,
        in_flight: fairpath_core::ByteCount,
        window: fairpath_core::ByteCount,
        overdue: fairpath_core::ByteCount,
    ) -> bool {
        self.largest = window.max(self.largest);
        self.overdue = overdue.max(self.overdue);
        in_flight <= self.largest + self.overdue + BURST
    }
}

/// The paths that have data and are watched by nobody, and for how long.
#[derive(Debug, Default)]
struct Strays {
    since: BTreeMap<PathId, Duration>,
    looked_at: Option<Instant>,
}

impl Strays {
    /// Takes the present strays. Returns one that has been a stray for longer than `patience`, with
    /// that time.
    fn look(&mut self, strays: BTreeSet<PathId>, patience: Duration, now: Instant) -> Option<(PathId, Duration)> {
        let step = self.looked_at.replace(now).map_or(Duration::ZERO, |before| now.saturating_duration_since(before));
        self.since.retain(|path, _| strays.contains(path));
        for path in strays {
            // While the host stood still nobody could do anything about it.
            self.since.entry(path).and_modify(|time| *time += step.min(STEP_MAX)).or_default();
        }
        self.since.iter().map(|(path, time)| (*path, *time)).find(|(_, time)| *time > patience)
    }
}

/// The data sent by one end of a connection, or received by the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The secret of the connection.
    pub secret: u64,
    /// The bytes of bulk given to it to send.
    pub bytes: u64,
    /// The number of messages.
    pub messages: u64,
}

/// Whether something waits that was never sent and is within the peer's credit, and a path has room for it now.
pub(crate) fn could_send(connection: &mut Connection, now: Instant) -> bool {
    let streams = connection.streams(now);
    let do_streams_wait = streams.unsent_bytes() > 0 && !streams.is_blocked();
    let waits = |channel: &ChannelId| !connection.is_all_sent(*channel) && !connection.is_blocked(*channel);
    let has_room = || {
        connection.with_engine(now, |engine, at| engine.snapshots(at).any(|one| engine.verdict(one.path, at).may_send))
    };
    (do_streams_wait || [ChannelId::Messages, ChannelId::Bulk].iter().any(waits)) && has_room()
}

impl Session {
    pub(crate) fn new(handle: ConnectionHandle) -> Self {
        Self {
            handle: Some(handle),
            secret: None,
            ended: None,
            unwritten: 0,
            written: 0,
            received: 0,
            arrived: BTreeSet::new(),
            messages_sent: 0,
            messages: 0,
            violation: None,
            windows: Vec::new(),
            strays: Strays::default(),
            told: BTreeMap::new(),
            streams: Vec::new(),
            asked: None,
            is_lost: false,
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.secret.is_some()
    }

    pub(crate) fn send(&mut self, bytes: u64) {
        self.unwritten = self.unwritten.saturating_add(bytes);
    }

    pub(crate) fn send_message(&mut self, connection: &mut Connection) {
        let Some(secret) = self.secret.filter(|_| self.ended.is_none()) else { return };
        let number = self.messages_sent;
        self.messages_sent += 1;
        connection.send_message(piece(secret, number, message_length(number))).expect("small enough");
    }

    pub(crate) fn sent(&self) -> Option<Account> {
        let bytes = self.written.saturating_add(self.unwritten);
        Some(Account { secret: self.secret?, bytes, messages: self.messages_sent })
    }

    pub(crate) fn received(&self) -> Option<Account> {
        Some(Account { secret: self.secret?, bytes: self.received, messages: self.messages })
    }

    fn violated(&mut self, what: impl FnOnce() -> String) {
        self.violation.get_or_insert_with(what);
    }

    /// One thing that happened, if anything did; true where the connection is made.
    pub(crate) fn read_event(&mut self, connection: &mut Connection) -> Option<bool> {
        match connection.poll_event()? {
            Event::Connected => {
                let mut secret = [0; 8];
                connection.export_keying_material(&mut secret, b"fairpath faults", b"").expect("8 bytes");
                self.secret = Some(u64::from_le_bytes(secret));
                return Some(true);
            }
            Event::Closed(reason) => {
                use noq_proto::ConnectionError::{ApplicationClosed, LocallyClosed};
                self.is_lost = !matches!(reason, ApplicationClosed(_) | LocallyClosed);
                self.ended = Some(reason.to_string());
            }
            Event::Streams(event) => self.streams.push(event),
            Event::StreamsAsked(token) => self.asked = Some(token),
            Event::Notice(PathNotice::Opened { interface } | PathNotice::Reopened { interface }) => {
                self.told.insert(interface, true);
            }
            Event::Notice(PathNotice::Closed { interface, .. }) => {
                self.told.insert(interface, false);
            }
            _ => {}
        }
        Some(false)
    }

    /// Takes what came, of bulk no more than `appetite` bytes in all. Whether there was anything.
    pub(crate) fn read(&mut self, connection: &mut Connection, appetite: u64) -> bool {
        let before = (self.received, self.messages);
        while self.received < appetite
            && let Some(record) = connection.take_record()
        {
            self.on_record(record.offset, &record.data);
        }
        while let Some(message) = connection.take_message() {
            self.on_message(&message);
        }
        before != (self.received, self.messages)
    }

    fn on_record(&mut self, offset: u64, data: &[u8]) {
        if !self.arrived.insert(offset) {
            self.violated(|| format!("the record at {offset} came twice"));
        }
        if !is_piece(self.secret.unwrap_or_default(), offset, data) {
            self.violated(|| format!("the record at {offset} came damaged, or is of another connection"));
        }
        self.received += data.len() as u64;
    }

    fn on_message(&mut self, message: &[u8]) {
        let number = self.messages;
        if message.len() != message_length(number) || !is_piece(self.secret.unwrap_or_default(), number, message) {
            self.violated(|| format!("message {number} came out of order or damaged, or is of another connection"));
        }
        self.messages += 1;
    }

    /// Writes what there is room for.
    pub(crate) fn write(&mut self, connection: &mut Connection) {
        let Some(secret) = self.secret else { return };
        while self.unwritten > 0 && connection.has_room(ChannelId::Bulk) {
            let (offset, length) = (self.written, self.unwritten.min(RECORD as u64));
            let record = Record { object: 0, offset, data: piece(secret, offset, length as usize) };
            connection.send_record(record).expect("small enough");
            self.written += length;
            self.unwritten -= length;
        }
    }

    /// Checks that data in flight on a path never exceeds its largest window by more than a burst.
    /// Data that has waited too long for an answer has left the network, though a late answer may
    /// change the bound.
    pub(crate) fn check_in_flight(&mut self, connection: &Connection, now: Instant) {
        for PathSnapshot { path, window, in_flight, .. } in connection.snapshots(now) {
            let overdue = connection.with_engine(now, |engine, at| engine.verdict(path, at).overdue);
            let at = path.get() as usize;
            if self.windows.len() <= at {
                self.windows.resize(at + 1, Watched::default());
            }
            if !self.windows[at].allows(in_flight, window, overdue) {
                self.violated(|| format!("{in_flight:?} in flight on path {path:?} at a window of {window:?}"));
            }
        }
    }

    /// Checks that all data sent on a path that does not arrive is found lost in time.
    pub(crate) fn check_strays(&mut self, connection: &Connection, now: Instant) {
        let answer = connection.snapshots(now).iter().filter_map(|path| Some(path.rtt?.probe_timeout())).max();
        let patience = STRAY_MIN.max(STRAY_ANSWERS * answer.unwrap_or_default());
        if let Some((path, time)) = self.strays.look(connection.stray_paths(), patience, now) {
            self.violated(|| format!("data on path {path:?}, which nobody watches, has had no fate for {time:?}"));
        }
    }

    /// Checks that buffers stay within the windows and the limits on data to send.
    pub(crate) fn check_held(&mut self, held: HeldData) {
        if !held.is_within(&HeldData::most()) {
            self.violated(|| format!("{held:?} is held, and {:?} is allowed", HeldData::most()));
        }
    }

    /// The first interface of which the last that was said, that its path is open or that it is closed, is not so.
    /// Where an interface has had several paths, one to somebody's copy of a packet for instance, they are told
    /// apart by names of their own, which may change: of these nothing is said.
    pub(crate) fn told_wrongly(&self, paths: &[PathReport]) -> Option<String> {
        let works = |path: &PathReport| matches!(path.state, PathState::Open | PathState::Suspected);
        let is_open = |name: &str| match &*paths.iter().filter(|path| path.interface == name).collect::<Vec<_>>() {
            [only] => Some(works(only)),
            _ => None,
        };
        self.told.iter().find(|(name, told)| is_open(name) == Some(!**told)).map(|(name, told)| {
            let said = if *told { "open" } else { "closed" };
            format!("the path of {name} was said to be {said}, and is not")
        })
    }
}

/// The words of the piece of data at `offset`, which no other piece has in this order, nor the same piece of another
/// connection.
fn words(secret: u64, offset: u64) -> impl Iterator<Item = [u8; 8]> {
    // Odd and without a pattern: 2⁶⁴ over the golden ratio.
    (offset..).step_by(8).map(move |at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ secret).to_le_bytes())
}

fn piece(secret: u64, offset: u64, length: usize) -> Bytes {
    let mut data = Vec::with_capacity(length + 8);
    words(secret, offset).take(length.div_ceil(8)).for_each(|word| data.extend_from_slice(&word));
    data.truncate(length);
    data.into()
}

/// The length of message `number`, in bytes.
fn message_length(number: u64) -> usize {
    100 + (number % 1_000) as usize
}

fn is_piece(secret: u64, offset: u64, data: &[u8]) -> bool {
    let (whole, rest) = data.as_chunks::<8>();
    let mut words = words(secret, offset);
    let is_same = whole.iter().zip(&mut words).fold(true, |same, (found, word)| same & (*found == word));
    is_same && words.next().is_some_and(|word| word.starts_with(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        Session { secret: Some(7), ..Session::new(ConnectionHandle(0)) }
    }

    #[test]
    fn what_comes_twice_or_damaged_or_of_another_connection_is_a_fault() {
        let mut good = session();
        good.on_record(0, &piece(7, 0, 20_000));
        good.on_record(20_000, &piece(7, 20_000, 5));
        good.on_message(&piece(7, 0, message_length(0)));
        good.on_message(&piece(7, 1, message_length(1)));
        assert_eq!((good.violation, good.received, good.messages), (None, 20_005, 2));
        let mut damaged = piece(7, 0, 20_000).to_vec();
        damaged[19_999] ^= 1;
        type Deed<'a> = &'a dyn Fn(&mut Session);
        let deeds: [(&str, Deed<'_>); 6] = [
            ("twice", &|one| (0..2).for_each(|_| one.on_record(0, &piece(7, 0, 100)))),
            ("damaged", &|one| one.on_record(0, &damaged)),
            ("of another connection", &|one| one.on_record(0, &piece(8, 0, 100))),
            ("elsewhere", &|one| one.on_record(8, &piece(7, 0, 100))),
            ("a message out of order", &|one| one.on_message(&piece(7, 1, message_length(1)))),
            ("a message of another connection", &|one| one.on_message(&piece(8, 0, message_length(0)))),
        ];
        for (case, deed) in deeds {
            let mut session = session();
            deed(&mut session);
            assert!(session.violation.is_some(), "{case}");
        }
    }

    #[test]
    fn what_is_held_beyond_what_is_allowed_is_a_fault() {
        let most = HeldData::most();
        let byte = fairpath_core::ByteCount::new(1);
        let mut good = session();
        good.check_held(most);
        assert_eq!(good.violation, None);
        for more in [
            HeldData { received: most.received + byte, ..most },
            HeldData { unsent: most.unsent + byte, ..most },
            HeldData { unacknowledged: most.unacknowledged + byte, ..most },
        ] {
            let mut session = session();
            session.check_held(more);
            assert!(session.violation.is_some(), "{more:?}");
        }
    }

    #[test]
    fn data_on_a_path_that_nobody_watches_is_a_fault_after_a_while() {
        #[expect(clippy::disallowed_methods, reason = "tests need an instant to begin at")]
        let start = Instant::now();
        let (mut strays, path) = (Strays::default(), PathId::new(3));
        let mut look = |ms, is_stray: bool| {
            let paths = is_stray.then_some(path).into_iter().collect();
            strays.look(paths, Duration::from_secs(2), start + Duration::from_millis(ms)).is_some()
        };
        assert!(!look(0, true) && !look(1_000, true) && !look(2_000, true));
        assert!(look(2_001, true));
        assert!(!look(2_002, false) && !look(2_003, true), "it was found lost");
        assert!(!look(60_000, true), "the host slept");
    }

    #[test]
    fn more_than_a_burst_beyond_the_largest_window_is_a_fault() {
        let bytes = fairpath_core::ByteCount::new;
        let mut watched = Watched::default();
        assert!(watched.allows(bytes(20_000) + BURST, bytes(20_000), bytes(0)));
        assert!(!watched.allows(bytes(20_001) + BURST, bytes(20_000), bytes(0)));
        assert!(watched.allows(bytes(20_000) + BURST, bytes(2_000), bytes(0)), "it was allowed when it left");
        assert!(watched.allows(bytes(20_500) + BURST, bytes(2_000), bytes(500)), "that is in the network no more");
    }
}

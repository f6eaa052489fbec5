//! Streams on a connection, and how they come from one and go to another.

use web_time::{Duration, Instant};

use super::{Connection, Event};
use crate::streams::{Streams, StreamsConfig, StreamsToken};

/// The label under which the token of streams is drawn from the keys of a connection [RFC5705 §4].
const LABEL: &[u8] = b"EXPORTER-fairpath-streams";

impl Connection {
    /// From now on the peer may open streams, and this end where the peer does the same. Both ends have to call it.
    pub fn begin_streams(&mut self, config: StreamsConfig) {
        if !self.lanes.are_streams_gone() {
            self.lanes.streams.admit_with(config);
        }
        self.output.look_again();
    }

    /// The streams of the connection, to do something with them.
    pub fn streams(&mut self, now: Instant) -> &mut Streams {
        self.lanes.streams.set_now(self.engine.at(now));
        &mut self.lanes.streams
    }

    /// Takes the streams away from a connection that was lost, to go on with them on another one: see
    /// [`Connection::resume_streams`]. `None` where they were taken before. From then on the connection takes nothing in:
    /// one that is open is to be closed.
    pub fn take_streams(&mut self, now: Instant) -> Option<Streams> {
        self.learn_fates(now);
        self.forget_queue();
        self.lanes.take_streams(self.is_server)
    }

    /// Goes on with streams of another connection with the same peer. A client calls it as soon as it is connected; the
    /// peer may refuse, and then [`StreamEvent::Lost`](crate::streams::StreamEvent::Lost) follows. A server calls it with
    /// those that [`Event::StreamsAsked`] names.
    ///
    /// # Errors
    ///
    /// They are given back where it is too early, because the handshake is not complete, or too late, because streams
    /// were used on this connection, or taken away from it.
    pub fn resume_streams(&mut self, streams: Streams) -> Result<(), Box<Streams>> {
        let token =
            self.own_token().filter(|_| self.is_connected && self.has_streams() && self.lanes.streams.are_untouched());
        let Some(token) = token else { return Err(Box::new(streams)) };
        self.lanes.streams = streams;
        self.lanes.streams.go_on(token);
        self.output.look_again();
        Ok(())
    }

    /// The streams that the peer asked for are not known.
    pub fn refuse_streams(&mut self) {
        self.lanes.streams.refuse();
        self.output.look_again();
    }

    /// Whether the streams are here, and were not taken away.
    pub fn has_streams(&self) -> bool {
        !self.lanes.are_streams_gone()
    }

    /// Whether both ends know which streams are on the connection: those of another, or new ones. A client that asks for no
    /// others knows at once.
    pub fn are_streams_agreed(&self) -> bool {
        self.lanes.streams.are_agreed()
    }

    /// Whether [`Connection::resume_streams`] would take streams now.
    pub fn may_resume_streams(&self) -> bool {
        self.is_connected && self.has_streams() && self.closed.is_none() && self.lanes.streams.are_untouched()
    }

    // ---- inside

    /// The keys are there.
    pub(super) fn name_streams(&mut self) {
        if let Some(token) = self.own_token() {
            self.lanes.streams.on_connected(token);
        }
    }

    fn own_token(&self) -> Option<StreamsToken> {
        let mut token = [0; StreamsToken::LEN];
        self.export_keying_material(&mut token, LABEL, b"").ok()?;
        Some(StreamsToken(token))
    }

    pub(super) fn on_streams(&mut self, datagram: &[u8], now: Instant) {
        if self.lanes.are_streams_gone() {
            return;
        }
        let streams = self.streams(now);
        let result = streams.on_datagram(datagram);
        let asked = streams.take_asked();
        self.events.extend(asked.map(Event::StreamsAsked));
        if let Err(error) = result {
            self.fail(error.to_string(), now);
        }
    }

    /// Windows are sized for the slowest of the paths in use.
    pub(super) fn size_windows(&mut self, now: Instant) {
        if self.lanes.streams.is_empty() {
            return;
        }
        let slowest = self.engine.with(now, |engine, at| {
            engine.snapshots(at).filter(|path| path.usable).filter_map(|path| Some(path.rtt?.smoothed)).max()
        });
        if let Some(slowest) = slowest {
            self.lanes.streams.set_round_trip(slowest.max(Duration::from_millis(1)));
        }
    }
}

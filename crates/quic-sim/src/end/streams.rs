//! The streams of an end, over the connections that it makes one after the other.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use fairpath_quic_core::streams::{StreamEvent, Streams, StreamsConfig, StreamsToken, Suspended};
use noq_proto::ConnectionHandle;

use super::End;
use crate::streams::{App, Plan};

/// The streams of an end, which outlive connections.
#[derive(Default)]
pub(super) struct StreamsOf {
    plan: Option<Plan>,
    apps: BTreeMap<StreamsToken, App>,
    suspended: Suspended,
    /// Those of the last connection.
    last: Option<StreamsToken>,
    /// How many sets of streams were lost.
    lost: u32,
}

impl End {
    /// From now on it opens streams, on the connection that there is and on those that follow.
    pub fn begin_streams(&mut self, plan: Plan) {
        self.streams.plan = Some(plan);
        if let Some((_, connection)) = self.current().filter(|(session, _)| session.is_connected()) {
            connection.begin_streams(config(plan));
        }
        self.is_due = true;
    }

    /// The streams that it was to open.
    pub fn plan_of_streams(&self) -> Option<Plan> {
        self.streams.plan
    }

    /// Goes on with the streams of an end of the same process, whose endpoint is given up.
    pub fn inherit_streams(&mut self, mut from: Self, now: Instant) {
        let now = from.clock.at(now);
        while let Some(at) = from.sessions.len().checked_sub(1) {
            let session = from.sessions.remove(at);
            let Some(connection) = session.handle.and_then(|handle| from.endpoint.connection(handle)) else { continue };
            if let Some(streams) = connection.take_streams(now) {
                from.streams.suspended.keep(streams, now);
            }
        }
        self.streams = from.streams;
    }

    /// Whether all that was planned for streams is done on the last connection.
    pub fn has_done_streams(&mut self) -> bool {
        let now = self.latest;
        if self.streams.plan.is_none() {
            return true;
        }
        let is_over = self.current().is_some_and(|(_, connection)| connection.streams(now).is_empty());
        is_over && self.app().is_some_and(App::is_done)
    }

    fn app(&self) -> Option<&App> {
        self.streams.last.and_then(|token| self.streams.apps.get(&token))
    }

    /// How the streams stand.
    pub fn state_of_streams(&mut self) -> String {
        let now = self.latest;
        let open = self.current().map_or(0, |(_, connection)| connection.streams(now).len());
        let state = self.app().map(App::state).unwrap_or_default();
        format!("{state}; {open} open, {} sets lost", self.streams.lost)
    }

    /// How many times all streams were lost.
    pub fn streams_lost(&self) -> u32 {
        self.streams.lost
    }

    /// Whether the streams of both ends are the same: where a process has begun again, one end may not know yet.
    pub fn shares_streams_with(&self, other: &Self) -> bool {
        self.streams.plan.is_none() || self.streams.last == other.streams.last
    }

    /// A stream that ended otherwise at this end than its writer at the other end has said.
    pub fn streams_differ_from(&self, writer: &Self) -> Option<String> {
        self.app()?.differs_from(writer.app()?)
    }

    // ---- inside

    /// A connection is made: it has streams, or goes on with those of the one before.
    pub(super) fn begin_streams_on(&mut self, made: ConnectionHandle, now: Instant) {
        let Some(plan) = self.streams.plan else { return };
        let Some(connection) = self.endpoint.connection(made) else { return };
        connection.begin_streams(config(plan));
        // Only a client has any here: a server waits to be asked.
        let last = self.streams.last.filter(|_| !self.pairs.is_empty());
        if let Some(streams) = last.and_then(|token| self.streams.suspended.take(token, now)) {
            connection.resume_streams(streams).expect("it is new");
        }
    }

    /// Lets the applications on streams do what they may. Whether anything had happened.
    pub(super) fn run_streams(&mut self, now: Instant) -> bool {
        let Some(plan) = self.streams.plan else { return false };
        let mut has_done = false;
        for at in 0..self.sessions.len() {
            has_done |= self.run_streams_of(at, plan, now);
        }
        self.streams.suspended.expire(now);
        has_done
    }

    fn run_streams_of(&mut self, at: usize, plan: Plan, now: Instant) -> bool {
        let is_server = self.pairs.is_empty();
        let asked = self.sessions[at].asked.take().map(|token| (token, self.find_streams(token, now)));
        let Self { sessions, endpoint, streams: of, violation, .. } = self;
        let session = &mut sessions[at];
        let Some(connection) = session.handle.and_then(|handle| endpoint.connection(handle)) else { return false };
        if !session.is_connected() {
            return false;
        }
        let mut has_done = asked.is_some();
        match asked {
            Some((_, Some(streams))) => connection.resume_streams(streams).expect("nothing was said of others"),
            Some((_, None)) => connection.refuse_streams(),
            None => {}
        }
        if std::mem::take(&mut session.is_lost) {
            connection.take_streams(now).into_iter().for_each(|streams| of.suspended.keep(streams, now));
            return true;
        }
        if session.ended.is_some() {
            return false;
        }
        let streams = connection.streams(now);
        let Some(token) = streams.token() else { return false };
        of.last = Some(token);
        let app = of.apps.entry(token).or_insert_with(|| App::new(plan, is_server, token));
        for event in session.streams.drain(..) {
            has_done = true;
            of.lost += u32::from(event == StreamEvent::Lost);
            app.on_event(event);
        }
        app.run(streams, now);
        if streams.held_bytes() > streams.window_bytes() {
            violation.get_or_insert(format!("{} bytes of streams are held", streams.held_bytes()));
        }
        if let Some(what) = app.violation.take() {
            violation.get_or_insert(what);
        }
        has_done
    }

    /// The streams of this name: of a connection that is lost, or of one that seems to live and is given up.
    fn find_streams(&mut self, token: StreamsToken, now: Instant) -> Option<Streams> {
        for session in &mut self.sessions {
            let Some(handle) = session.handle else { continue };
            let Some(connection) = self.endpoint.connection(handle) else { continue };
            if connection.streams(now).token() == Some(token) {
                let streams = connection.take_streams(now);
                connection.close(0, Bytes::from_static(b"replaced"), now);
                self.streams.suspended.keep(streams?, now);
            }
        }
        self.streams.suspended.take(token, now)
    }
}

fn config(plan: Plan) -> StreamsConfig {
    let mut config = StreamsConfig::default();
    config.open_max = plan.open_max;
    config
}

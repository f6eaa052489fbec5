//! Streams that outlive their connection.
//!
//! Each end keeps its streams when a connection is lost. The client asks for them on the next one, by the token that
//! both ends drew from the first, and says nothing else of streams before the server has answered. A server says
//! nothing of streams before the client has: so neither takes a word about some streams for one about others. A server
//! that has them goes on with them, which answers the client. One that has not refuses, and both begin anew.
//!
//! All that is not acknowledged is sent again; the receiver knows by its offset what it has already.

use std::collections::BTreeMap;

use web_time::Instant;

use super::id::StreamsToken;
use super::part::Due;
use super::rescue::Rescue;
use super::set::{Phase, StreamEvent, Streams};

impl Streams {
    /// The name under which the peer may ask for them on another connection, once both ends know it.
    pub fn token(&self) -> Option<StreamsToken> {
        self.token
    }

    /// Whether there is anything that another connection could go on with.
    pub fn is_resumable(&self) -> bool {
        self.has_heard && self.token.is_some()
    }

    /// Whether it is clear that these are the streams that both ends mean.
    pub(crate) fn are_agreed(&self) -> bool {
        self.phase == Phase::Open
    }

    /// The connection is made, which gives them this token where they have none.
    pub(crate) fn on_connected(&mut self, token: StreamsToken) {
        self.token.get_or_insert(token);
    }

    /// Nothing will be heard of any packet any more, and no time goes on: all that is not acknowledged is sent again.
    pub(crate) fn on_connection_gone(&mut self) {
        let paths: Vec<_> = self.in_flight.paths().collect();
        paths.into_iter().for_each(|path| self.on_path_gone(path));
        self.rescue = Rescue::default();
        self.window.end_round();
        self.streams.values_mut().for_each(|stream| stream.recv.window.end_round());
    }

    /// Goes on on another connection, whose own token is `fresh`.
    pub(crate) fn go_on(&mut self, fresh: StreamsToken) {
        (self.fresh_token, self.has_spoken, self.was_asked) = (Some(fresh), false, false);
        self.phase = if self.is_server { Phase::Open } else { Phase::Asking };
        self.due.remove(&Due::Refused);
        if !self.is_server {
            self.due.insert(Due::Resume);
        } else if self.is_admitted {
            // Something has to be said for the client to know.
            self.due.insert(Due::Limits);
        }
    }

    /// Whether others may take their place, because nothing was said of them.
    pub(crate) fn are_untouched(&self) -> bool {
        !self.has_spoken && (!self.is_server || self.phase == Phase::Listening)
    }

    /// The streams that the peer asked for are not known.
    pub(crate) fn refuse(&mut self) {
        if self.is_server && self.phase == Phase::Listening {
            self.has_refused = true;
            self.due.insert(Due::Refused);
        }
    }

    /// The peer does not know these streams. All begins anew.
    pub(super) fn on_refused(&mut self) {
        if self.phase != Phase::Asking {
            return;
        }
        let mut fresh = Self::new(self.is_server, self.config.clone());
        (fresh.now, fresh.round_trip, fresh.token) = (self.now, self.round_trip, self.fresh_token);
        fresh.events.push_back(StreamEvent::Lost);
        if self.is_admitted {
            fresh.admit();
        }
        *self = fresh;
    }

    /// The peer asks for older streams.
    pub(super) fn on_asked(&mut self, token: StreamsToken) -> bool {
        match self.phase {
            // It was said already, and that may be lost.
            _ if self.has_refused => self.refuse(),
            Phase::Listening if !std::mem::replace(&mut self.was_asked, true) => self.asked = Some(token),
            // The answer is due.
            Phase::Listening => {}
            _ => return self.token == Some(token),
        }
        true
    }

    /// The token of the streams that the peer asked for; said once.
    pub(crate) fn take_asked(&mut self) -> Option<StreamsToken> {
        self.asked.take()
    }
}

/// Streams whose connections are lost, until they are asked for or their time is over.
#[derive(Debug, Default)]
pub struct Suspended {
    kept: BTreeMap<StreamsToken, (Streams, Instant)>,
}

impl Suspended {
    /// Keeps streams for as long as their configuration says, where there is anything to go on with.
    pub fn keep(&mut self, streams: Streams, now: Instant) {
        if let Some(token) = streams.token().filter(|_| streams.is_resumable()) {
            let until = now + streams.config.kept;
            self.kept.insert(token, (streams, until));
        }
    }

    /// The streams of this name.
    pub fn take(&mut self, token: StreamsToken, now: Instant) -> Option<Streams> {
        self.expire(now);
        self.kept.remove(&token).map(|(streams, _)| streams)
    }

    /// Lets go of those whose time is over.
    pub fn expire(&mut self, now: Instant) {
        self.kept.retain(|_, (_, until)| now < *until);
    }

    /// When [`Suspended::expire`] has something to let go of.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.kept.values().map(|(_, until)| *until).min()
    }

    /// How many sets of streams are kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

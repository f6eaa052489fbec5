//! The handle of a running emulation.

use std::io::{PipeWriter, Write};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use fairpath_core::PathId;
use fairpath_net::{Filter, LinkId, Network, Rate};

use crate::error::EmulatorError;
use crate::event_loop::{Command, EventLoop};
use crate::relay::{Datagram, Relay};
use crate::stats::EmulatorStats;

/// A running emulation. It ends, and its sockets close, when this is dropped.
#[derive(Debug)]
pub struct Emulator {
    relays: Vec<SocketAddr>,
    links: usize,
    /// `None` only while it is being dropped.
    control: Option<Control>,
    thread: Option<JoinHandle<()>>,
}

/// Both ends when dropped: the thread notices that the pipe is closed.
#[derive(Debug)]
struct Control {
    commands: mpsc::Sender<Command>,
    wake: PipeWriter,
}

impl Emulator {
    pub(crate) fn start(
        network: Network<Datagram>,
        relays: Vec<Relay>,
        link_names: Vec<String>,
    ) -> Result<Self, EmulatorError> {
        let (woken, wake) = std::io::pipe().map_err(EmulatorError::os("make a pipe"))?;
        let (commands, receiver) = mpsc::channel();
        let addresses = relays.iter().map(Relay::address).collect();
        let links = link_names.len();
        let event_loop = EventLoop::new(network, relays, link_names, receiver, woken);
        let thread = thread::Builder::new()
            .name("fairpath-emu".to_owned())
            .spawn(move || event_loop.run())
            .map_err(EmulatorError::os("start a thread"))?;
        Ok(Self { relays: addresses, links, control: Some(Control { commands, wake }), thread: Some(thread) })
    }

    /// Where a client of `path` sends to, instead of the server.
    ///
    /// # Panics
    ///
    /// If `path` is not this emulation's.
    pub fn relay(&self, path: PathId) -> SocketAddr {
        self.relays[path.get() as usize]
    }

    /// Where the clients of each path send to, in order of the paths.
    pub fn relays(&self) -> &[SocketAddr] {
        &self.relays
    }

    /// Switches a link on or off. While it is off it drops what comes, and what waits in its queue
    /// is dropped; what was already transmitted still arrives. In effect when this returns.
    ///
    /// # Panics
    ///
    /// If `link` is not this emulation's.
    pub fn set_link_up(&self, link: LinkId, up: bool) {
        assert!(link.index() < self.links, "link number {} is not of this emulation", link.index());
        self.ask(move |event_loop| event_loop.set_link_up(link, up));
    }

    /// Changes the rate of a link, for what is not yet being transmitted. In effect when this
    /// returns.
    ///
    /// # Panics
    ///
    /// If `link` is not this emulation's.
    pub fn set_link_rate(&self, link: LinkId, rate: impl Into<Rate>) {
        assert!(link.index() < self.links, "link number {} is not of this emulation", link.index());
        let rate = rate.into();
        self.ask(move |event_loop| event_loop.set_link_rate(link, &rate));
    }

    /// Puts a filter into the entrance of a link, in place of the one before: it drops some of what
    /// comes, to show what becomes of a connection then. In effect when this returns.
    ///
    /// # Panics
    ///
    /// If `link` is not this emulation's.
    pub fn set_filter(&self, link: LinkId, filter: Filter) {
        assert!(link.index() < self.links, "link number {} is not of this emulation", link.index());
        self.ask(move |event_loop| event_loop.set_filter(link, filter));
    }

    /// Switches a path on or off. While it is off its relay drops everything in both directions,
    /// what is under way included; links that it shares serve the other paths as before. In effect
    /// when this returns.
    ///
    /// # Panics
    ///
    /// If `path` is not this emulation's.
    pub fn set_path_up(&self, path: PathId, up: bool) {
        let path = path.get() as usize;
        assert!(path < self.relays.len(), "path {path} is not of this emulation");
        self.ask(move |event_loop| event_loop.set_path_up(path, up));
    }

    /// The counters of links, paths and the clock.
    pub fn stats(&self) -> EmulatorStats {
        self.ask(|event_loop| event_loop.stats())
    }

    /// Forgets the timing errors measured so far, for example those of a warm-up.
    pub fn reset_timing(&self) {
        self.ask(EventLoop::reset_timing);
    }

    /// Has the thread do something and waits for the answer.
    fn ask<T: Send + 'static>(&self, question: impl FnOnce(&mut EventLoop) -> T + Send + 'static) -> T {
        let (answer, answered) = mpsc::channel();
        let command: Command = Box::new(move |event_loop| {
            let _ = answer.send(question(event_loop));
        });
        let control = self.control.as_ref().expect("the control lives as long as the handle");
        let asked = control.commands.send(command).is_ok() && (&control.wake).write_all(&[1]).is_ok();
        assert!(asked, "the emulation's thread has panicked");
        answered.recv().expect("the emulation's thread has panicked")
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.control = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, that was reported when it happened.
            let _ = thread.join();
        }
    }
}

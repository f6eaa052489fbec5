//! The paths of the stack's connection, as the policy acts on them.

use std::net::IpAddr;
use web_time::Instant;

use fairpath_engine::PathId as EnginePath;
use noq_proto::{FourTuple, PathError, PathId, PathStats, PathStatus};

use super::lanes::Lanes;
use super::output::Output;
use crate::adapter::PathHandle;
use crate::paths::policy::Paths;
use crate::receipts::Receipts;

pub(super) struct Live<'a> {
    pub(super) quic: &'a mut noq_proto::Connection,
    pub(super) interfaces: &'a [(String, IpAddr)],
    pub(super) primary: Option<IpAddr>,
    pub(super) receipts: &'a Receipts,
    pub(super) output: &'a mut Output,
    pub(super) lanes: &'a mut Lanes,
    pub(super) has_flows: bool,
    pub(super) now: Instant,
}

/// The calls on a path fail only where it is closed already; the event is then on its way.
impl Paths for Live<'_> {
    fn stats(&mut self, id: PathId) -> Option<PathStats> {
        self.quic.path_stats(id)
    }

    fn ids(&mut self) -> Vec<PathId> {
        self.quic.paths()
    }

    fn network_path(&mut self, id: PathId) -> Option<FourTuple> {
        self.quic.network_path(id).ok()
    }

    fn engine_path(&mut self, id: PathId) -> Option<EnginePath> {
        self.quic.congestion_state(id).and_then(|controller| PathHandle::of(controller.clone_box()))
    }

    fn arrived_at(&self, id: PathId) -> Option<Instant> {
        self.receipts.grew_at(id)
    }

    fn ping(&mut self, id: PathId) {
        if self.quic.ping_path(id).is_ok()
            && let Some(path) = self.engine_path(id)
        {
            self.output.give_turn(path);
        }
    }

    fn has_flows(&self) -> bool {
        self.has_flows
    }

    fn resend(&mut self, path: EnginePath) {
        self.lanes.resend(path);
    }

    fn set_backup(&mut self, id: PathId, backup: bool) {
        let status = if backup { PathStatus::Backup } else { PathStatus::Available };
        let _ = self.quic.set_path_status(id, status);
    }

    fn close_with(&mut self, id: PathId, code: u32) -> bool {
        let path = self.engine_path(id);
        let is_closed = self.quic.close_path(self.now, id, code.into()).is_ok();
        // The stack says of no packet of it that it is lost until it forgets the path, three probe timeouts later.
        if let Some(path) = path.filter(|_| is_closed) {
            self.resend(path);
        }
        is_closed
    }

    fn open(&mut self, network_path: FourTuple, backup: bool) -> Result<PathId, PathError> {
        let status = if backup { PathStatus::Backup } else { PathStatus::Available };
        self.quic.open_path(network_path, status, self.now)
    }

    fn interface(&self, local: Option<IpAddr>) -> Option<(String, IpAddr)> {
        let local = local.or(self.primary);
        let known = self.interfaces.iter().find(|(_, address)| local.is_none_or(|local| local == *address));
        known.cloned()
    }
}

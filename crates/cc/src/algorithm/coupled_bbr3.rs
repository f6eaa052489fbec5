//! Coupled BBRv3: the paths of a group are one BBRv3 flow. It has one model, made of what all of them deliver and lose
//! together, and what this allows is divided among them in proportion to what each delivers.
//!
//! # Source
//!
//! Ours, of the model of [BBRv3]. [Han2021] couples paths by slowing each of them down by a gain, which follows from
//! estimates of bandwidth that the gain changes; and each path still probes, and is bounded by losses, for itself.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | the flow of [BBRv3] | `Flow::model` | |
//! | d_r | `Member::recent`, what the path delivered lately | bytes |
//! | m_r | `Member::base`, its least round-trip time | s |
//!
//! # Deviations
//!
//! - None from [BBRv3] where a path is alone: its own model is then in use, as that of [`Bbr3`](crate::Bbr3) is.
//! - Round-trip times of paths of one flow are made comparable: what a packet waited, on top of the mean of the least
//!   round-trip times of the paths, in proportion to what they deliver. So the product of bandwidth and delay is
//!   the sum of those of the paths.
//! - No event changes what another path may do: the others follow with their next acknowledgement.
//! - A path counts from its first acknowledgement on; before that it has its initial window. It then has the share of
//!   what it delivered, which can double in a round trip: the group's rate is known, and is not guessed anew.
//! - Persistent congestion [RFC9002 §7.6] on one path takes the window of that path, and of the flow only what it
//!   loses.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::{
    Ack, Bitrate, ByteCount, Congestion, CongestionSignal, DeliveryRate, Groups, LostPacket, PathId, PathMap, Sent,
    SentState, Timestamp,
};

use super::bbr3::Bbr3Path;
use crate::controller::{ControlState, Controller};
use crate::model::{BbrConfig, Delivery, Gathered, Opening, PathModel, Random, Sizes, WINDOW_MAX, bdp_multiple};

/// The weight of earlier deliveries of a path beside those of the newest round trip. In eighths: a
/// share follows within some eight round trips, and does not follow a burst.
const KEPT_EIGHTHS: u64 = 7;

/// Coupled BBRv3.
///
/// Paths are coupled within the groups of the newest partition. Before there is one, all paths are one group; a path
/// that the partition does not name is alone.
#[derive(Debug)]
pub struct CoupledBbr3 {
    config: BbrConfig,
    paths: PathMap<Member>,
    flows: Vec<Flow>,
    groups: Option<Groups>,
}

#[derive(Debug)]
struct Member {
    sizes: Sizes,
    /// The model of the path alone; out of use while it is part of a flow.
    own: Bbr3Path,
    gathered: Gathered,
    /// The least round-trip time of the path; `None` before its first acknowledgement.
    base: Option<Duration>,
    in_flight: ByteCount,
    /// Packets that left while the path was part of a flow.
    sent: VecDeque<Packet>,
    /// The bytes that it delivered in the round trip of the flow that goes on, and lately.
    delivered: ByteCount,
    recent: ByteCount,
    /// When persistent congestion was found, until a packet arrives that was sent later.
    collapsed_at: Option<Timestamp>,
    window: ByteCount,
    pacing: Option<Bitrate>,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    sent_at: Timestamp,
    /// `None`: acknowledged or lost.
    state: Option<SentState>,
}

/// Paths that are one flow: two or more.
#[derive(Debug)]
struct Flow {
    paths: Vec<PathId>,
    model: Bbr3Path,
    rate: DeliveryRate,
    gathered: Gathered,
}

impl Member {
    /// Takes the state of the packet that left at `sent_at`. Of several that left at once any will do.
    fn take(&mut self, sent_at: Timestamp) -> Option<SentState> {
        let first = self.sent.partition_point(|packet| packet.sent_at < sent_at);
        let together = self.sent.range_mut(first..).take_while(|packet| packet.sent_at == sent_at);
        let state = together.into_iter().find_map(|packet| packet.state.take());
        while self.sent.front().is_some_and(|packet| packet.state.is_none()) {
            self.sent.pop_front();
        }
        state
    }

    /// The part of the path's need that is in flight where it delivers as it did lately, up to a factor.
    fn need(&self) -> u128 {
        u128::from(self.recent.get()) * self.base.unwrap_or_default().as_nanos()
    }

    /// The path is alone.
    fn follow_own(&mut self) {
        // Without a rate of its own yet, it keeps what it had of a flow.
        (self.window, self.pacing) = (self.own.window(), self.own.pacing_rate().or(self.pacing));
    }
}

impl CoupledBbr3 {
    /// A controller without paths.
    pub fn new(config: BbrConfig) -> Self {
        Self { config, paths: PathMap::new(), flows: Vec::new(), groups: None }
    }

    fn flow_of(&self, path: PathId) -> Option<usize> {
        self.flows.iter().position(|flow| flow.paths.contains(&path))
    }

    fn in_flight(&self, flow: usize) -> ByteCount {
        self.members(flow).map(|(_, member)| member.in_flight).sum()
    }

    fn members(&self, flow: usize) -> impl Iterator<Item = (PathId, &Member)> + Clone {
        self.flows[flow].paths.iter().filter_map(|path| Some((*path, self.paths.get(*path)?)))
    }

    /// Brings the flows in line with the groups, and with the paths that there are and that deliver.
    fn regroup(&mut self, now: Timestamp) {
        let known: Vec<PathId> =
            self.paths.iter().filter(|(_, member)| member.base.is_some()).map(|(path, _)| path).collect();
        let mut sets: Vec<Vec<PathId>> = Vec::new();
        for path in known {
            let together =
                |set: &&mut Vec<PathId>| self.groups.as_ref().is_none_or(|groups| groups.together(set[0], path));
            match sets.iter_mut().find(together) {
                Some(set) => set.push(path),
                None => sets.push(vec![path]),
            }
        }
        sets.retain(|set| set.len() > 1);
        if self.flows.len() == sets.len() && self.flows.iter().all(|flow| sets.contains(&flow.paths)) {
            return;
        }
        let (kept, ended): (Vec<Flow>, Vec<Flow>) =
            core::mem::take(&mut self.flows).into_iter().partition(|flow| sets.contains(&flow.paths));
        self.flows = kept;
        ended.iter().for_each(|flow| self.part(flow, now));
        for paths in sets {
            if !self.flows.iter().any(|flow| flow.paths == paths) {
                self.join(paths, now);
            }
        }
    }

    /// Each path of a flow goes on alone, with its share.
    fn part(&mut self, flow: &Flow, now: Timestamp) {
        let recent = |path: &PathId| self.paths.get(*path).map(|member| member.recent.as_f64());
        let sum: f64 = flow.paths.iter().filter_map(recent).sum();
        for path in &flow.paths {
            let Some(member) = self.paths.get_mut(*path) else { continue };
            let share = if sum > 0.0 { member.recent.as_f64() / sum } else { 1.0 / flow.paths.len() as f64 };
            let opening = Opening { now, sizes: member.sizes, random: Random::new(self.config.seed, *path) };
            member.own = Bbr3Path::of_parts([(&flow.model, share)].into_iter(), member.base, opening);
            member.gathered = Gathered::default();
            member.sent.clear();
        }
    }

    /// These paths, each of which is alone, become one flow.
    fn join(&mut self, paths: Vec<PathId>, now: Timestamp) {
        let members = || paths.iter().filter_map(|path| self.paths.get(*path));
        let Some(sizes) = members().map(|member| member.sizes).max_by_key(|sizes| sizes.datagram) else { return };
        let sizes = Sizes { paths: paths.len() as u64, ..sizes };
        let opening = Opening { now, sizes, random: Random::new(self.config.seed, paths[0]) };
        // Any round trip will do to tell how much each delivers in one.
        let round = members().filter_map(|member| member.base).max().unwrap_or_default();
        for path in &paths {
            let Some(member) = self.paths.get_mut(*path) else { continue };
            member.sent.clear();
            member.gathered = Gathered::default();
            member.delivered = ByteCount::ZERO;
            member.recent = bdp_multiple(8.0, member.own.bandwidth(), round);
        }
        let members = || paths.iter().filter_map(|path| self.paths.get(*path));
        let model = Bbr3Path::of_parts(members().map(|member| (&member.own, 1.0)), mean_base(members()), opening);
        self.flows.push(Flow { paths, model, rate: DeliveryRate::new(), gathered: Gathered::default() });
    }

    /// A delivery on `path`, as its flow sees it.
    fn in_the_flow(&self, flow: usize, path: PathId, delivery: Delivery) -> Delivery {
        let members = || self.members(flow).map(|(_, member)| member);
        let own = self.paths.get(path).and_then(|member| member.base).unwrap_or_default();
        let rtt = delivery.rtt().saturating_sub(own) + mean_base(members()).unwrap_or_default();
        Delivery { sent_at: delivery.now - rtt, ..delivery }
    }

    /// A round trip of the flow is over.
    fn end_round(&mut self, flow: usize) {
        for path in &self.flows[flow].paths {
            let Some(member) = self.paths.get_mut(*path) else { continue };
            member.recent =
                ByteCount::new(member.recent.get() / 8 * KEPT_EIGHTHS) + core::mem::take(&mut member.delivered);
        }
    }

    /// The path's part of the flow's window and rate.
    fn divide(&mut self, flow: usize, path: PathId) {
        let (needs, recents) = self.members(flow).fold((0, ByteCount::ZERO), |(needs, recents), (_, member)| {
            (needs + member.need(), recents + member.recent)
        });
        let count = self.flows[flow].paths.len() as f64;
        let model = &self.flows[flow].model;
        let (window, pacing) = (model.window(), model.pacing_rate());
        let Some(member) = self.paths.get_mut(path) else { return };
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 / count };
        let of_window = share(member.need() as f64, needs as f64);
        let least = member.sizes.min_pipe();
        member.window = ByteCount::from_f64(window.as_f64() * of_window).max(least);
        let floor = member.base.and_then(|base| least.per(base)).unwrap_or(Bitrate::ZERO);
        let of_rate = share(member.recent.as_f64(), recents.as_f64());
        let pacing = pacing.map(|pacing| pacing.scaled(of_rate).max(floor));
        member.pacing = pacing.filter(|pacing| *pacing > Bitrate::ZERO).or(member.pacing);
        if member.collapsed_at.is_some() {
            member.window = member.window.min(member.sizes.min_window());
        }
    }
}

/// The mean of the least round-trip times, in proportion to what the paths deliver; the plain mean where nothing was
/// delivered lately.
fn mean_base<'a>(members: impl Iterator<Item = &'a Member> + Clone) -> Option<Duration> {
    let recents: u128 = members.clone().map(|member| u128::from(member.recent.get())).sum();
    let based = || members.clone().filter_map(|member| member.base);
    let nanos = match recents {
        0 => based().map(|base| base.as_nanos()).sum::<u128>().checked_div(based().count() as u128)?,
        _ => members.map(Member::need).sum::<u128>() / recents,
    };
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

impl Controller for CoupledBbr3 {
    fn on_path_opened(&mut self, path: PathId, max_datagram: ByteCount, now: Timestamp) {
        if self.paths.contains(path) {
            return;
        }
        let sizes = Sizes::new(&self.config, max_datagram);
        let own = Bbr3Path::new(Opening { now, sizes, random: Random::new(self.config.seed, path) });
        let mut member = Member {
            sizes,
            own,
            gathered: Gathered::default(),
            base: None,
            in_flight: ByteCount::ZERO,
            sent: VecDeque::new(),
            delivered: ByteCount::ZERO,
            recent: ByteCount::ZERO,
            collapsed_at: None,
            window: ByteCount::ZERO,
            pacing: None,
        };
        member.follow_own();
        self.paths.insert(path, member);
    }

    fn on_path_closed(&mut self, path: PathId) {
        let Some(flow) = self.flow_of(path) else {
            self.paths.remove(path);
            return;
        };
        self.flows[flow].paths.retain(|member| *member != path);
        self.paths.remove(path);
        // The one that is left goes on alone, from its next acknowledgement on.
    }

    fn on_max_datagram(&mut self, path: PathId, max_datagram: ByteCount) {
        let Some(member) = self.paths.get_mut(path) else { return };
        member.sizes.datagram = max_datagram.max(ByteCount::new(1));
        member.own.set_datagram(member.sizes.datagram);
        member.window = member.window.max(member.sizes.min_window());
    }

    fn on_sent(&mut self, path: PathId, sent: &Sent) {
        let flow = self.flow_of(path);
        let before = flow.map_or(ByteCount::ZERO, |flow| self.in_flight(flow));
        let Some(member) = self.paths.get_mut(path) else { return };
        let own_before = core::mem::replace(&mut member.in_flight, sent.in_flight);
        let Some(flow) = flow else {
            member.own.on_sent(sent.now, sent.in_flight <= sent.bytes);
            member.follow_own();
            return;
        };
        let before = before.saturating_sub(own_before) + sent.in_flight.saturating_sub(sent.bytes);
        let flow = &mut self.flows[flow];
        let state = Some(flow.rate.on_sent(sent.now, before));
        member.sent.push_back(Packet { sent_at: sent.now, state });
        flow.model.on_sent(sent.now, before == ByteCount::ZERO);
    }

    fn on_ack(&mut self, path: PathId, ack: &Ack) {
        let flow = self.flow_of(path);
        let all = flow.map(|flow| self.in_flight(flow));
        let Some(member) = self.paths.get_mut(path) else { return };
        let before = core::mem::replace(&mut member.in_flight, ack.in_flight.saturating_sub(ack.bytes));
        let rtt = ack.now.since(ack.sent_at);
        member.base = Some(member.base.map_or(rtt, |base| base.min(rtt)));
        member.delivered += ack.bytes;
        if member.collapsed_at.is_some_and(|at| ack.sent_at > at) {
            member.collapsed_at = None;
        }
        let (Some(flow), Some(all)) = (flow, all) else {
            member.gathered.add(ack);
            return;
        };
        let flow = &mut self.flows[flow];
        let rate = member.take(ack.sent_at).and_then(|state| flow.rate.on_ack(ack.now, ack.bytes, &state));
        // Only the host knows that there was no data.
        let app_limited = ack.rate.is_some_and(|rate| rate.app_limited);
        let rate = rate.map(|rate| fairpath_core::RateSample { app_limited, ..rate });
        flow.gathered.add(&Ack { in_flight: all.saturating_sub(before) + ack.in_flight, rate, ..*ack });
    }

    fn on_ack_end(&mut self, path: PathId, now: Timestamp) {
        self.regroup(now);
        let Some(flow) = self.flow_of(path) else {
            let Some(member) = self.paths.get_mut(path) else { return };
            if let Some(delivery) = member.gathered.take(now) {
                member.own.on_delivery(&delivery);
            }
            member.follow_own();
            return;
        };
        if let Some(delivery) = self.flows[flow].gathered.take(now) {
            let delivery = self.in_the_flow(flow, path, delivery);
            self.flows[flow].model.on_delivery(&delivery);
            if self.flows[flow].model.starts_round() {
                self.end_round(flow);
            }
        }
        self.divide(flow, path);
    }

    fn on_lost(&mut self, path: PathId, lost: &LostPacket) {
        let flow = self.flow_of(path);
        let Some(member) = self.paths.get_mut(path) else { return };
        member.in_flight = member.in_flight.saturating_sub(lost.bytes);
        let Some(flow) = flow else { return member.own.on_lost(lost) };
        let flow = &mut self.flows[flow];
        let of_flow = member.take(lost.sent_at).map(|state| flow.rate.on_lost(lost.bytes, &state));
        let app_limited = lost.sample.app_limited;
        let sample = of_flow.map_or(lost.sample, |sample| fairpath_core::LossSample { app_limited, ..sample });
        flow.model.on_lost(&LostPacket { sample, ..*lost });
    }

    fn on_congestion(&mut self, path: PathId, event: &Congestion) {
        let flow = self.flow_of(path);
        let all = flow.map_or(ByteCount::ZERO, |flow| self.in_flight(flow));
        let Some(member) = self.paths.get_mut(path) else { return };
        let Some(flow) = flow else {
            member.own.on_congestion(event);
            member.window = member.window.min(member.own.window());
            return;
        };
        if event.persistent {
            member.collapsed_at = Some(event.now);
            member.window = member.window.min(member.sizes.min_window());
        }
        if event.signal == CongestionSignal::Ecn {
            let in_flight = all.max(event.in_flight);
            self.flows[flow].model.on_congestion(&Congestion { in_flight, persistent: false, ..*event });
        }
    }

    fn on_groups(&mut self, groups: &Groups) {
        // Paths change over with their next acknowledgement.
        self.groups = Some(groups.clone());
    }

    fn window(&self, path: PathId) -> ByteCount {
        self.paths.get(path).map_or(ByteCount::ZERO, |member| member.window.min(WINDOW_MAX))
    }

    fn pacing_rate(&self, path: PathId) -> Option<Bitrate> {
        self.paths.get(path)?.pacing
    }

    fn state(&self, path: PathId) -> Option<ControlState> {
        let member = self.paths.get(path)?;
        let state = self.flow_of(path).map_or_else(|| member.own.state(), |flow| self.flows[flow].model.state());
        Some(ControlState { window: self.window(path), ..state })
    }
}

#[cfg(test)]
mod tests;

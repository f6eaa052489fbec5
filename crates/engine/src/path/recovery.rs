//! Loss detection of one path: which packets are lost, and which losses were spurious [RFC9002 §6].
//!
//! Every host of the engine keeps one for each path: the simulator's, and the QUIC host's, whose
//! own stack is configured to be patient (`adapter/losses.rs` there).
//!
//! A packet is lost when three later ones have arrived or when it is an eighth of a round trip late [RFC9002 §6.1]. On a
//! path that reorders, these thresholds grow (`reordering`). Losses within one round trip are one episode of congestion
//! [RFC9002 §7.3.2]; an episode whose packets all arrive after all is taken back [RFC9438 §4.9].
//!
//! # Deviations
//!
//! - Persistent congestion is looked for within the losses that one acknowledgement shows [RFC9002 §7.6.2 has it over
//!   all losses]: an outage ends with one acknowledgement that shows all of it.

mod reordering;

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::{Rtt, Timestamp};

use self::reordering::Reordering;

/// [RFC9002 §7.6.1, kPersistentCongestionThreshold]
const PERSISTENT: u32 = 3;

/// How many probe timeouts a packet that was declared lost is still waited for, if others follow
/// it; ours.
const LATE_AT_MOST: u32 = 2;

/// The probe timeout [RFC9002 §6.2.1], for a peer that may delay an acknowledgement by
/// `ack_delay_max`. Before the first sample it is three initial round trips.
pub fn probe_timeout(rtt: Option<Rtt>, ack_delay_max: Duration) -> Duration {
    rtt.map_or(Rtt::INITIAL * 3, |rtt| rtt.probe_timeout() + ack_delay_max)
}

/// A packet that was sent, with its host's note.
#[derive(Clone, Copy, Debug)]
pub struct Tracked<T> {
    /// Its number.
    pub number: u64,
    /// When it left.
    pub at: Timestamp,
    /// The host's own note about the packet.
    pub data: T,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Outstanding,
    Acked,
    Lost,
}

impl<T> Tracked<T> {
    /// Whether it was declared lost. If it is acknowledged after all, the loss was spurious.
    pub fn was_lost(&self) -> bool {
        self.fate == Fate::Lost
    }
}

/// The result of a search for losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossBatch {
    /// When the newest packet whose loss counts as congestion was sent; `None` if there is none.
    pub newest: Option<Timestamp>,
    /// Whether everything over longer than the period of persistent congestion was lost.
    pub persistent: bool,
}

/// A packet that was declared lost recently, and its episode of congestion.
#[derive(Clone, Copy, Debug)]
struct Declared<T> {
    packet: Tracked<T>,
    episode: u32,
}

/// Packets that were declared lost and that the current acknowledgement covers.
#[derive(Clone, Copy, Debug)]
struct Late {
    oldest_at: Timestamp,
    episode: u32,
}

/// The packets of one path. `T` is the host's note about each.
#[derive(Debug)]
pub struct LossDetector<T> {
    /// In the order of numbers; the first is outstanding.
    sent: VecDeque<Tracked<T>>,
    /// In the order of numbers.
    declared: VecDeque<Declared<T>>,
    late: Option<Late>,
    /// When losses last began an episode, and the one before, as congestion control sees it: an
    /// undone episode does not count.
    episode_at: Option<Timestamp>,
    episode_before: Option<Timestamp>,
    /// The number of episodes, undone ones included.
    episodes: u32,
    reordering: Reordering,
    outstanding: u32,
    newest_acked: Option<u64>,
    /// The number of the next packet, if none is skipped.
    next: u64,
    last_sent_at: Timestamp,
    /// The newest packet whose loss does not count as congestion.
    newest_exempt: Option<u64>,
    /// When the next packet is late enough to be given up.
    due: Option<Timestamp>,
}

impl<T> Default for LossDetector<T> {
    fn default() -> Self {
        Self {
            sent: VecDeque::new(),
            declared: VecDeque::new(),
            late: None,
            episode_at: None,
            episode_before: None,
            episodes: 0,
            reordering: Reordering::default(),
            outstanding: 0,
            newest_acked: None,
            next: 0,
            last_sent_at: Timestamp::ZERO,
            newest_exempt: None,
            due: None,
        }
    }
}

impl<T: Copy> LossDetector<T> {
    /// A packet leaves. Numbers rise.
    #[inline]
    pub fn on_sent(&mut self, number: u64, data: T, now: Timestamp) {
        self.sent.push_back(Tracked { number, at: now, data, fate: Fate::Outstanding });
        self.outstanding += 1;
        self.last_sent_at = now;
        self.next = number + 1;
    }

    /// The loss of packets up to this one does not count as congestion, for example if they probe
    /// the path.
    pub fn exempt_up_to(&mut self, newest: Option<u64>) {
        self.newest_exempt = newest;
    }

    /// The number of the next packet, if none is skipped.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The newest packet that was acknowledged.
    pub fn newest_acked(&self) -> Option<u64> {
        self.newest_acked
    }

    /// When the newest packet left.
    pub fn last_sent_at(&self) -> Timestamp {
        self.last_sent_at
    }

    /// The newest packet, unless all packets are accounted for.
    pub fn newest(&self) -> Option<&Tracked<T>> {
        self.sent.back()
    }

    /// For how many packets there is an entry.
    pub fn entries(&self) -> usize {
        self.sent.len()
    }

    /// The packets on their way, oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = &Tracked<T>> {
        self.sent.iter().filter(|packet| packet.fate == Fate::Outstanding)
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.outstanding == 0
    }

    /// Whether something older than the newest that has arrived is still missing.
    pub fn has_gap(&self) -> bool {
        self.sent.front().is_some_and(|oldest| Some(oldest.number) <= self.newest_acked)
    }

    /// Whether packets that were declared lost are still waited for.
    pub fn has_declared(&self) -> bool {
        !self.declared.is_empty()
    }

    /// The newest packet that was declared lost and is still waited for.
    pub fn newest_declared(&self) -> Option<&Tracked<T>> {
        self.declared.back().map(|declared| &declared.packet)
    }

    /// Whether the packet was declared lost and is still waited for.
    pub fn is_declared(&self, number: u64) -> bool {
        self.declared_at(number).is_some()
    }

    fn declared_at(&self, number: u64) -> Option<usize> {
        self.declared.binary_search_by_key(&number, |declared| declared.packet.number).ok()
    }

    /// The packet was acknowledged. Returns its entry as it was, if that is news. With `at`, a
    /// packet sent at another time does not match. [`LossDetector::on_ack_end`] follows the last
    /// packet of an acknowledgement.
    #[inline]
    pub fn on_acked(&mut self, number: u64, at: Option<Timestamp>) -> Option<Tracked<T>> {
        if self.declared.back().is_some_and(|newest| newest.packet.number >= number)
            && let Some(late) = self.take_declared(number, at)
        {
            return Some(late);
        }
        let packet = self.settle(number, at, Fate::Acked)?;
        self.newest_acked = self.newest_acked.max(Some(number));
        Some(packet)
    }

    #[inline(never)]
    fn take_declared(&mut self, number: u64, at: Option<Timestamp>) -> Option<Tracked<T>> {
        let place = self.declared_at(number)?;
        let Declared { packet, episode } = self.declared[place];
        if at.is_some_and(|at| at != packet.at) {
            return None;
        }
        self.declared.remove(place);
        self.late = Some(self.late.map_or(Late { oldest_at: packet.at, episode }, |late| Late {
            oldest_at: late.oldest_at.min(packet.at),
            episode: late.episode.max(episode),
        }));
        Some(packet)
    }

    /// Whether the acknowledgement being read covers packets that were declared lost.
    pub fn has_late(&self) -> bool {
        self.late.is_some()
    }

    /// The host has given up the packet by its own decision.
    pub fn on_given_up(&mut self, number: u64, at: Option<Timestamp>) {
        self.settle(number, at, Fate::Lost);
    }

    #[inline]
    fn settle(&mut self, number: u64, at: Option<Timestamp>, fate: Fate) -> Option<Tracked<T>> {
        let first = self.sent.front()?.number;
        // Hosts skip few numbers, or none.
        let guess = usize::try_from(number.checked_sub(first)?).ok()?;
        let place = match self.sent.get(guess) {
            Some(packet) if packet.number == number => guess,
            _ => self.sent.binary_search_by_key(&number, |packet| packet.number).ok()?,
        };
        let packet = &mut self.sent[place];
        if packet.fate != Fate::Outstanding || at.is_some_and(|at| at != packet.at) {
            return None;
        }
        let before = *packet;
        packet.fate = fate;
        self.outstanding -= 1;
        self.forget_settled();
        Some(before)
    }

    /// An acknowledgement has been read completely. Returns true if it leaves no loss of the newest
    /// episode of congestion missing: the episode was spurious.
    #[inline]
    pub fn on_ack_end(&mut self, rtt: Option<Rtt>, now: Timestamp) -> bool {
        let Some(late) = self.late.take() else { return false };
        self.reordering.on_late(late.oldest_at, rtt, now);
        // Earlier losses had an episode of their own.
        let is_of_newest = |episode: u32| episode == self.episodes;
        let was_none =
            is_of_newest(late.episode) && !self.declared.iter().any(|declared| is_of_newest(declared.episode));
        if was_none {
            self.episode_at = self.episode_before;
        }
        was_none
    }

    /// Passes each packet that is lost by now to `lost`, oldest first, and whether it counts as
    /// congestion [RFC9002 §6.1]. The peer may delay an acknowledgement by `ack_delay_max`.
    pub fn find_lost(
        &mut self,
        rtt: Option<Rtt>,
        ack_delay_max: Duration,
        now: Timestamp,
        mut lost: impl FnMut(&Tracked<T>, bool),
    ) -> LossBatch {
        self.due = None;
        let mut batch = LossBatch::default();
        let Some(newest_acked) = self.newest_acked else { return batch };
        let (patience, packet_threshold) = (self.reordering.patience(rtt), self.reordering.packet_threshold());
        let known_before = self.declared.len();
        let mut run_began: Option<Timestamp> = None;
        let mut run_max = Duration::ZERO;
        for packet in self.sent.iter_mut().take_while(|packet| packet.number < newest_acked) {
            match packet.fate {
                Fate::Lost => continue,
                Fate::Acked => {
                    run_began = None;
                    continue;
                }
                Fate::Outstanding => {}
            }
            let late_at = packet.at + patience;
            if newest_acked - packet.number < packet_threshold && late_at > now {
                // Those that follow left later.
                self.due = Some(late_at);
                break;
            }
            let is_congestion = self.newest_exempt.is_none_or(|newest| packet.number > newest);
            packet.fate = Fate::Lost;
            self.outstanding -= 1;
            lost(packet, is_congestion);
            if is_congestion {
                self.declared.push_back(Declared { packet: *packet, episode: self.episodes });
                batch.newest = Some(packet.at);
                run_max = run_max.max(packet.at.since(*run_began.get_or_insert(packet.at)));
            }
        }
        batch.persistent = rtt.is_some() && run_max > probe_timeout(rtt, ack_delay_max) * PERSISTENT;
        if let Some(newest) = batch.newest {
            self.reordering.on_lost(newest_acked, self.next);
            self.begin_episode(known_before, newest, probe_timeout(rtt, ack_delay_max) * LATE_AT_MOST, now);
        }
        self.forget_settled();
        batch
    }

    /// The losses from index `known` on begin an episode, unless they left before the last one
    /// began.
    fn begin_episode(&mut self, known: usize, newest: Timestamp, late: Duration, now: Timestamp) {
        if self.episode_at.is_some_and(|began| newest <= began) {
            return;
        }
        (self.episode_before, self.episode_at) = (self.episode_at, Some(now));
        self.episodes += 1;
        // Packets of earlier episodes that left longer than `late` ago are not expected any more.
        // The losses of the newest episode are kept, since each missing one speaks against undoing
        // it.
        let mut new = self.declared.split_off(known);
        new.iter_mut().for_each(|declared| declared.episode = self.episodes);
        self.declared.retain(|declared| now.since(declared.packet.at) <= late);
        self.declared.append(&mut new);
    }

    /// When the next packet is late enough to be given up; `None` if none waits for that.
    pub fn due(&self) -> Option<Timestamp> {
        self.due
    }

    #[inline]
    fn forget_settled(&mut self) {
        while self.sent.front().is_some_and(|packet| packet.fate != Fate::Outstanding) {
            self.sent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;

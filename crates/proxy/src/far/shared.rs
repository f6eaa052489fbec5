//! The common ground of a far end's connections: the devices, what they carry, and the addresses of this machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fairpath::{Connection, StreamLimits};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

use super::FarNotice;
use super::relays::Behind;
use super::state::{FarState, StateError, Usage};
use crate::authorized::{Authorized, Device, DeviceName};
use crate::greeting::{Denial, Proof};
use crate::key::PublicKey;
use crate::pace::Pace;
use crate::relay::Meter;
use crate::snapshot::{End, Ledger, Peer, Snapshot};

/// The connections to targets that a device may have in the making at once. More wait.
const DIALS_MAX: usize = 256;

/// The ports that a device may listen at.
const LISTENS_MAX: usize = 64;

/// How long the addresses of this machine are taken to be the same.
const OWN: Duration = Duration::from_secs(2);

/// How often denials are told.
const DENIALS: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: FarState,
    pub(crate) guard: [u8; 32],
    pub(crate) limits: StreamLimits,
    /// The connections of programs.
    pub(crate) ledger: Arc<Ledger>,
    /// The connections of devices.
    present: Mutex<BTreeMap<u64, (DeviceName, Connection)>>,
    /// The peers that come by way of further ports.
    pub(crate) behind: Arc<Behind>,
    /// Addresses that lead to this machine though no interface has them.
    advertise: Vec<IpAddr>,
    authorized: watch::Sender<Arc<Authorized>>,
    notices: mpsc::Sender<FarNotice>,
    changing: Mutex<Changing>,
}

#[derive(Debug)]
struct Changing {
    mark: Option<(SystemTime, u64, u64)>,
    own: (Option<Instant>, Arc<[IpAddr]>),
    meters: BTreeMap<PublicKey, Arc<DeviceMeter>>,
    noted: BTreeMap<String, Usage>,
    denied: (u64, Option<Denial>, Option<Instant>),
}

/// The account of a device: its caps, and the bytes that it has carried.
#[derive(Debug)]
pub(crate) struct DeviceMeter {
    up: (Pace, AtomicU64),
    down: (Pace, AtomicU64),
    pub(crate) dials: Semaphore,
    /// The ports that it listens at, at most.
    pub(crate) listens: Semaphore,
    /// Its connections at this moment.
    connections: AtomicU64,
    /// The bytes that were carried when they were last written down.
    noted: Mutex<(u64, u64)>,
}

impl Shared {
    pub(crate) fn new(
        state: FarState,
        guard: [u8; 32],
        limits: StreamLimits,
        (advertise, behind): (Vec<SocketAddr>, Arc<Behind>),
        notices: mpsc::Sender<FarNotice>,
    ) -> Result<Arc<Self>, StateError> {
        let mark = state.mark();
        let authorized = state.authorized()?;
        let bad = authorized.bad.clone();
        let changing = Changing {
            mark,
            own: (None, Arc::new([])),
            meters: BTreeMap::new(),
            noted: state.usage()?,
            denied: (0, None, None),
        };
        let shared = Self {
            state,
            guard,
            limits,
            ledger: Arc::default(),
            present: Mutex::default(),
            behind,
            advertise: advertise.iter().map(SocketAddr::ip).collect(),
            authorized: watch::Sender::new(Arc::new(authorized)),
            notices,
            changing: Mutex::new(changing),
        };
        if !bad.is_empty() {
            shared.tell(FarNotice::BadLines(bad));
        }
        Ok(Arc::new(shared))
    }

    fn changing(&self) -> MutexGuard<'_, Changing> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn present(&self) -> MutexGuard<'_, BTreeMap<u64, (DeviceName, Connection)>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the connection of a device, until what is returned is dropped.
    pub(crate) fn enter(self: &Arc<Self>, name: &DeviceName, connection: &Connection) -> Present {
        let mut present = self.present();
        let id = present.last_key_value().map_or(0, |(last, _)| last + 1);
        present.insert(id, (name.clone(), connection.clone()));
        Present { shared: self.clone(), id }
    }

    /// This end at this moment.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let present: Vec<(DeviceName, Connection)> = self.present().values().cloned().collect();
        let peers = present.iter().map(|(name, connection)| Peer::of(name.to_string(), connection)).collect();
        self.ledger.snapshot(End::Serve, peers)
    }

    /// Tells the keeper, where there is room for it.
    pub(crate) fn tell(&self, notice: FarNotice) {
        let _ = self.notices.try_send(notice);
    }

    /// The devices that may connect, and when they change.
    pub(crate) fn authorized(&self) -> watch::Receiver<Arc<Authorized>> {
        self.authorized.subscribe()
    }

    /// Reads the devices anew, where their file has changed.
    pub(crate) fn look(&self) {
        let mark = self.state.mark();
        if std::mem::replace(&mut self.changing().mark, mark) != mark {
            self.reload();
        }
    }

    fn reload(&self) {
        match self.state.authorized() {
            Ok(read) => {
                if !read.bad.is_empty() {
                    self.tell(FarNotice::BadLines(read.bad.clone()));
                }
                self.authorized.send_replace(Arc::new(read));
            }
            // Those who are known stay known: the file is there, and cannot be read for a moment.
            Err(error) => self.tell(FarNotice::Broken(error.to_string())),
        }
    }

    /// Lets a device join.
    pub(crate) fn join(&self, key: PublicKey, proof: &Proof) -> Result<Device, Denial> {
        let device = self.state.join(key, proof)?;
        self.reload();
        self.tell(FarNotice::Joined(device.name.clone()));
        Ok(device)
    }

    /// Counts a peer that was not let in.
    pub(crate) fn denied(&self, denial: Denial) {
        let mut changing = self.changing();
        changing.denied.0 += 1;
        changing.denied.1 = Some(denial);
        self.tell_denials(&mut changing);
    }

    fn tell_denials(&self, changing: &mut Changing) {
        let (count, last, told) = &mut changing.denied;
        if let Some(denial) = last
            && told.is_none_or(|told| told.elapsed() >= DENIALS)
        {
            self.tell(FarNotice::Denied(*count, denial.to_string()));
            (*count, *last, *told) = (0, None, Some(Instant::now()));
        }
    }

    /// The addresses of this machine, and those that lead to it.
    pub(crate) fn own(&self) -> Arc<[IpAddr]> {
        let mut changing = self.changing();
        if changing.own.0.is_none_or(|looked| looked.elapsed() > OWN) {
            let found = fairpath::interfaces().unwrap_or_default().into_iter().map(|one| one.address);
            changing.own = (Some(Instant::now()), found.chain(self.advertise.iter().copied()).collect());
        }
        changing.own.1.clone()
    }

    /// The meter of a device, which all its connections share.
    pub(crate) fn meter(&self, key: PublicKey) -> Arc<DeviceMeter> {
        self.changing().meters.entry(key).or_insert_with(|| Arc::new(DeviceMeter::new())).clone()
    }

    /// Writes down what the devices have carried, and where this end is reached.
    pub(crate) fn note(&self, addresses: &[SocketAddr]) {
        let authorized = self.authorized.borrow().clone();
        let mut changing = self.changing();
        self.tell_denials(&mut changing);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let Changing { meters, noted, .. } = &mut *changing;
        let before = noted.clone();
        for (key, meter) in meters.iter() {
            let Some(name) = authorized.device(key).map(|device| &device.name) else { continue };
            let ((up, down), usage) = (meter.take(), noted.entry(name.to_string()).or_default());
            usage.up_bytes += up;
            usage.down_bytes += down;
            if meter.connections.load(Ordering::Relaxed) > 0 || up + down > 0 {
                usage.seen_unix_s = now;
            }
        }
        let is_known = |name: &str| name.parse().is_ok_and(|name: DeviceName| authorized.named(&name).is_some());
        noted.retain(|name, _| is_known(name));
        // A device that is gone needs no meter, once all was written down.
        meters.retain(|_, meter| Arc::strong_count(meter) > 1);
        let result = if *noted == before { Ok(()) } else { self.state.note_usage(noted) };
        let serving = if addresses.is_empty() { Ok(()) } else { self.state.note_serving(addresses) };
        if let Err(error) = result.and(serving) {
            self.tell(FarNotice::Broken(error.to_string()));
        }
    }
}

impl DeviceMeter {
    fn new() -> Self {
        Self {
            up: (Pace::new(None), AtomicU64::new(0)),
            down: (Pace::new(None), AtomicU64::new(0)),
            dials: Semaphore::new(DIALS_MAX),
            listens: Semaphore::new(LISTENS_MAX),
            connections: AtomicU64::new(0),
            noted: Mutex::new((0, 0)),
        }
    }

    /// The caps of the device's line.
    pub(crate) fn heed(&self, device: &Device) {
        self.up.0.set(device.rate);
        self.down.0.set(device.rate);
    }

    /// One connection more, until what is returned is dropped.
    pub(crate) fn connected(self: &Arc<Self>) -> Connected {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connected(self.clone())
    }

    /// The bytes that were carried since this was last called.
    fn take(&self) -> (u64, u64) {
        let now = (self.up.1.load(Ordering::Relaxed), self.down.1.load(Ordering::Relaxed));
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *noted, now);
        (now.0 - before.0, now.1 - before.1)
    }
}

/// The connection of a device that snapshots show.
#[derive(Debug)]
pub(crate) struct Present {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Present {
    fn drop(&mut self) {
        self.shared.present().remove(&self.id);
    }
}

/// A connection of a device that is there.
#[derive(Debug)]
pub(crate) struct Connected(Arc<DeviceMeter>);

impl Connected {
    /// The connections of the device.
    pub(crate) fn count(&self) -> u64 {
        self.0.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Meter for DeviceMeter {
    async fn up(&self, bytes: usize) {
        self.up.1.fetch_add(bytes as u64, Ordering::Relaxed);
        self.up.0.take(bytes).await;
    }

    async fn down(&self, bytes: usize) {
        self.down.1.fetch_add(bytes as u64, Ordering::Relaxed);
        self.down.0.take(bytes).await;
    }
}

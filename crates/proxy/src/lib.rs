//! Any program over several network paths: its connections enter at a port of the near end, and leave at the far end.
//!
//! The far end ([`Far`]) is a machine that is reachable: a rented server, or a line at home. The near end ([`Near`]) has
//! several links. Between them is one connection of the library `fairpath` over all paths, and on it a stream for each
//! connection of a program.
//!
//! - **Devices.** A near end is known by a key that is made there and never leaves. It joins with an invitation
//!   ([`FarState::invite`], [`join`]), which is good once and for a day. The far end keeps a line for each device
//!   ([`Authorized`]); [`FarState::revoke`] takes it away, and the device is gone within a second.
//! - **Reach.** Names are resolved at the far end. A device reaches public unicast addresses, and others only where its
//!   line names them ([`Reach`]).
//! - **Programs.** One port speaks SOCKS5 and HTTP. A program is answered when the far end has connected, in its protocol's
//!   own codes ([`RefusalKind`]). Each direction ends by itself, and a reset is told as a reset.
//!
//! Everything that strangers and programs say is bounded in length, number and time. Nothing is printed; notices say what
//! happens.

mod authorized;
mod control;
mod far;
mod greeting;
mod hosts;
mod invitations;
mod key;
mod near;
mod pace;
mod packets;
mod reach;
mod refusal;
mod relay;
mod snapshot;
mod still;
mod store;
mod target;
mod udp;
mod wire;

pub use authorized::{Authorized, BadLine, BadName, Device, DeviceName};
pub use control::{Answer, Control, Controlled, Request, change, snapshot};
pub use far::{Devices, Far, FarConfig, FarError, FarNotice, FarState, Known, StateError, Usage};
pub use greeting::Denial;
pub use invitations::INVITATION_LIFETIME;
pub use key::{BadKey, DeviceKey, PublicKey};
pub use near::{
    BadForward, BadPassword, Examination, ExamineConfig, Finding, Forward, GatePorts, Gates, JoinError, Led, LinkState,
    Near, NearConfig, NearError, NearNotice, NearState, NearStateError, Password, Protocol, Reverse, Shared, Together,
    examination_max, examine, join,
};
pub use reach::{BadReach, Reach};
pub use refusal::{Refusal, RefusalKind};
pub use snapshot::{Carried, End, Kind, PathNow, Peer, Snapshot};
pub use store::StoreError;
pub use target::{BadTarget, Host, Target};

//! The tests of endpoints and connections, as one program: it is linked once.
//!
//! Apart from it is `guests`, which counts the memory of its whole process.

mod closing;
mod hq_interop;
mod strangers;

use std::net::{IpAddr, Ipv4Addr};

use fairpath_quic_core::{Application, DATAGRAM_ETHERNET, Endpoint, EndpointConfig, Identity};

/// The client's address.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// The server's.
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

fn endpoint(identity: Option<Identity>) -> Endpoint {
    let config = EndpointConfig { datagram_max: DATAGRAM_ETHERNET, identity, application: Application::Fairpath };
    Endpoint::new(config).expect("an endpoint")
}

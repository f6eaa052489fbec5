//! Where packets of flows come in and go out, as the command line names it: `udp://HOST:PORT?OPTION=VALUE`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fairpath_quic::flows::PACKET_MAX;

use crate::host_port::HostPort;

const RIGHT: &str = "udp:// with an address and a port is needed, such as udp://127.0.0.1:5000";

/// Options about the buffers and waits of other programs. They mean nothing here.
const OF_OTHERS: [&str; 6] = ["buffer_size", "fifo_size", "overrun_nonfatal", "reuse", "reuse_socket", "timeout"];

/// A place as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) at: HostPort,
    /// The address of the interface on which a group is joined, or sent to.
    pub(super) local: Option<IpAddr>,
    /// Through how many routers packets to a group go.
    pub(super) ttl: Option<u32>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "udp://{}", self.at)
    }
}

/// Reads a place to take packets at. `udp://@:5000`, as players write it, is any address of this machine.
pub(crate) fn source(text: &str) -> Result<Place, String> {
    let (host, options) = split(text)?;
    let host = host.strip_prefix('@').unwrap_or(host);
    let at = match host.strip_prefix(':') {
        Some(port) => {
            let port = port.parse().map_err(|_| RIGHT)?;
            HostPort::Address(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))
        }
        None => HostPort::parse(host, RIGHT)?,
    };
    place(at, options)
}

/// Reads a place to send packets to.
pub(crate) fn destination(text: &str) -> Result<Place, String> {
    let (host, options) = split(text)?;
    let at = HostPort::parse(host, RIGHT)?;
    match at.ip().is_some_and(|ip| ip.is_unspecified()) {
        true => Err(RIGHT.into()),
        false => place(at, options),
    }
}

fn split(text: &str) -> Result<(&str, &str), String> {
    let rest = text.strip_prefix("udp://").ok_or(RIGHT)?;
    Ok(rest.split_once('?').unwrap_or((rest, "")))
}

fn place(at: HostPort, options: &str) -> Result<Place, String> {
    let mut place = Place { at, local: None, ttl: None };
    if place.at.port() == 0 {
        return Err(RIGHT.into());
    }
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match key {
            "localaddr" => {
                let right =
                    || format!("localaddr={value} is no IP address of this machine, such as localaddr=192.0.2.7");
                place.local = Some(value.parse().map_err(|_| right())?);
            }
            "ttl" => {
                let right = || format!("ttl={value} is no whole number from 0 to 255");
                place.ttl = Some(u32::from(value.parse::<u8>().map_err(|_| right())?));
            }
            // Packets leave as large as they come, so it only must not be more than a packet can be.
            "pkt_size" => {
                let right =
                    || format!("pkt_size={value} is no size of a packet: from 1 to {PACKET_MAX} bytes are carried");
                value.parse().ok().filter(|size| (1..=PACKET_MAX).contains(size)).ok_or_else(right)?;
            }
            _ if OF_OTHERS.contains(&key) => {}
            _ => return Err(format!("there is no option '{key}' for udp://; there are pkt_size, localaddr and ttl")),
        }
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_or_a_name_and_a_port() {
        let shown = |place: Result<Place, String>| place.map(|place| place.to_string());
        for (text, expected) in [
            ("udp://127.0.0.1:5000", "udp://127.0.0.1:5000"),
            ("udp://@:5000", "udp://0.0.0.0:5000"),
            ("udp://:5000", "udp://0.0.0.0:5000"),
            ("udp://@239.0.0.1:5000", "udp://239.0.0.1:5000"),
            ("udp://encoder.example:5000?fifo_size=1&overrun_nonfatal=1", "udp://encoder.example:5000"),
        ] {
            assert_eq!(shown(source(text)), Ok(expected.to_owned()));
        }
        assert!(source("udp://[::1]:5000").is_ok() && destination("udp://[::1]:5000").is_ok());
        for wrong in ["127.0.0.1:5000", "udp://127.0.0.1", "udp://127.0.0.1:0", "srt://127.0.0.1:5000", "udp://@:x"] {
            assert!(source(wrong).unwrap_err().contains("such as udp://127.0.0.1:5000"), "{wrong}");
            assert!(destination(wrong).unwrap_err().contains("such as udp://127.0.0.1:5000"), "{wrong}");
        }
        for wrong in ["udp://@:5000", "udp://:5000", "udp://0.0.0.0:5000"] {
            assert!(destination(wrong).unwrap_err().contains("such as udp://127.0.0.1:5000"), "{wrong}");
        }
    }

    #[test]
    fn options_are_read_and_one_that_is_unknown_is_named() {
        let place = destination("udp://239.0.0.1:5000?pkt_size=1316&ttl=4&localaddr=192.0.2.7").unwrap();
        assert_eq!((place.ttl, place.local), (Some(4), Some("192.0.2.7".parse().unwrap())));
        for (text, words) in [
            ("udp://127.0.0.1:5000?pkt_size=0", "pkt_size=0"),
            ("udp://127.0.0.1:5000?pkt_size=900000", "pkt_size=900000"),
            ("udp://127.0.0.1:5000?ttl=300", "ttl=300"),
            ("udp://127.0.0.1:5000?localaddr=eth0", "localaddr=eth0"),
            ("udp://127.0.0.1:5000?mode=caller", "'mode'"),
        ] {
            assert!(source(text).unwrap_err().contains(words), "{text}");
        }
    }
}

//! HTTP/1.1 as programs speak it to a proxy (RFC 9110, RFC 9112): CONNECT, and requests for `http://` addresses.
//!
//! A request for an address goes to its host on a connection of its own, which ends with the answer.

use std::net::IpAddr;

use crate::refusal::Refusal;
use crate::target::{BadTarget, Target, shown};

/// The longest head of a request, in bytes, and the most of its fields.
pub(super) const HEAD_MAX: usize = 32 << 10;
const FIELDS_MAX: usize = 100;

/// The fields that concern this hop only (RFC 9110, section 7.6.1).
const HOP: [&str; 7] =
    ["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"];

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) address: String,
    minor: u8,
    fields: Vec<(String, Vec<u8>)>,
}

/// The wish of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A connection to a target.
    Connect(Target),
    /// A request to a target: the words to send there first.
    Forward(Target, Vec<u8>),
    /// A page of this port itself.
    Own(String),
}

/// A request that is not understood, with the status that says so.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Bad {
    /// The head is no head of a request.
    #[error("the request is not understood: {0}")]
    Head(String),
    /// The target is none.
    #[error("{0}")]
    Target(#[from] BadTarget),
    /// The pages of this port were asked for under the name of another host.
    #[error("this is a proxy: its own pages are found by its address, and other hosts by http://…")]
    Host,
    /// The address is neither CONNECT's nor of `http://`.
    #[error("'{0}' is no address for a proxy: http://… is, and other connections are made by CONNECT")]
    Address(String),
}

/// Reads the head of a request.
pub(super) fn head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Bad> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes).map_err(|error| Bad::Head(error.to_string()))? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let head = Head {
        method: request.method.unwrap_or_default().to_owned(),
        address: request.path.unwrap_or_default().to_owned(),
        minor: request.version.unwrap_or_default(),
        fields: request.headers.iter().map(|field| (field.name.to_owned(), field.value.to_vec())).collect(),
    };
    Ok(Some((head, length)))
}

impl Head {
    /// The value of a field.
    pub(super) fn field(&self, name: &str) -> Option<&[u8]> {
        let field = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_slice())
    }

    /// Whether the program named this port by an address of its own. A name may be one that a web site has given to this
    /// machine's address, so that its scripts can read the pages of the port.
    fn is_for_this_port(&self) -> bool {
        let Some(host) = self.field("host") else { return true };
        let host = String::from_utf8_lossy(host);
        let is_address = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        let bare = host.rsplit_once(':').map_or(&*host, |(bare, _)| bare);
        is_address(&host) || is_address(bare) || bare.eq_ignore_ascii_case("localhost")
    }

    /// The wish of the program.
    pub(super) fn wish(&self) -> Result<Wish, Bad> {
        if self.method == "CONNECT" {
            return Ok(Wish::Connect(self.address.parse()?));
        }
        if self.address.starts_with('/') {
            if !self.is_for_this_port() {
                return Err(Bad::Host);
            }
            return Ok(Wish::Own(self.address.clone()));
        }
        let (scheme, rest) = self.address.split_once("://").unwrap_or_default();
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(Bad::Address(shown(&self.address)));
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // A name and a password before the host are for the host; programs send them as a field.
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let has_port =
            authority.rsplit_once(':').is_some_and(|(host, _)| !host.starts_with('[') || host.ends_with(']'));
        let target = if has_port { authority.parse()? } else { Target::named(authority, 80)? };
        Ok(Wish::Forward(target, self.forwarded(authority, path)))
    }

    /// The head as the host is to see it.
    fn forwarded(&self, authority: &str, path: &str) -> Vec<u8> {
        let slash = if path.starts_with('/') { "" } else { "/" };
        let path = path.split('#').next().unwrap_or_default();
        let mut head =
            format!("{} {slash}{path} HTTP/1.{}\r\nHost: {authority}\r\n", self.method, self.minor).into_bytes();
        // Fields that the program names as of this hop are not passed on either.
        let named = String::from_utf8_lossy(self.field("connection").unwrap_or_default()).to_ascii_lowercase();
        let named: Vec<&str> = named.split(',').map(str::trim).collect();
        let is_upgrade = named.contains(&"upgrade") && self.field("upgrade").is_some();
        for (name, value) in &self.fields {
            let lower = name.to_ascii_lowercase();
            let is_upgraded = lower == "upgrade" && is_upgrade;
            let is_hop = HOP.contains(&lower.as_str()) || named.contains(&lower.as_str()) || lower == "upgrade";
            if lower != "host" && (is_upgraded || !is_hop) {
                head.extend(name.as_bytes());
                head.extend(b": ");
                head.extend(value);
                head.extend(b"\r\n");
            }
        }
        let connection = if is_upgrade { "Upgrade" } else { "close" };
        head.extend(format!("Connection: {connection}\r\n\r\n").into_bytes());
        head
    }
}

/// The answer to a CONNECT that was carried out.
pub(super) const CONNECTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// The answer that a password is wanted.
pub(super) fn password_wanted() -> Vec<u8> {
    let words = "this proxy wants a password";
    response(
        (407, "Proxy Authentication Required"),
        "text/plain",
        words,
        "Proxy-Authenticate: Basic realm=\"fairpath\"\r\n",
    )
}

/// The answer to a request that was refused.
pub(super) fn refused(refusal: &Refusal) -> Vec<u8> {
    response(refusal.kind.http(), "text/plain", &refusal.words, "")
}

/// The answer to a request that is not understood.
pub(super) fn bad(bad: &Bad) -> Vec<u8> {
    response((400, "Bad Request"), "text/plain", &bad.to_string(), "")
}

/// An answer that ends the connection.
pub(super) fn response((code, reason): (u16, &str), kind: &str, body: &str, fields: &str) -> Vec<u8> {
    let length = body.len() + 1;
    format!(
        "HTTP/1.1 {code} {reason}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n{fields}\r\n{body}\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Head {
        let (head, length) = head(text.as_bytes()).unwrap().unwrap();
        assert_eq!(length, text.len());
        head
    }

    #[test]
    fn a_head_may_come_in_pieces_and_with_more_behind_it() {
        let text = "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n";
        for length in 0..text.len() {
            assert_eq!(head(&text.as_bytes()[..length]), Ok(None), "{length}");
        }
        assert_eq!(head(format!("{text}\x16\x03").as_bytes()).unwrap().unwrap().1, text.len());
        assert_eq!(read(text).wish(), Ok(Wish::Connect("example.com:443".parse().unwrap())));
        assert!(matches!(head(b"CONNECT\0 x"), Err(Bad::Head(_))));
    }

    #[test]
    fn a_request_goes_to_its_host_without_the_fields_of_this_hop() {
        let head = read(
            "GET http://user@example.com:8080/a?b#c HTTP/1.1\r\nHost: other\r\nProxy-Authorization: Basic x\r\n\
             Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\nAccept: */*\r\n\r\n",
        );
        let Ok(Wish::Forward(target, words)) = head.wish() else { panic!("{:?}", head.wish()) };
        assert_eq!(target.to_string(), "example.com:8080");
        let words = String::from_utf8(words).unwrap();
        assert_eq!(words, "GET /a?b HTTP/1.1\r\nHost: example.com:8080\r\nAccept: */*\r\nConnection: close\r\n\r\n");
        let socket = read("GET http://[2001:db8::1]?q HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        let Ok(Wish::Forward(target, words)) = socket.wish() else { panic!("{:?}", socket.wish()) };
        assert_eq!(target.to_string(), "[2001:db8::1]:80");
        let words = String::from_utf8(words).unwrap();
        assert!(
            words.starts_with("GET /?q HTTP/1.1\r\n")
                && words.contains("Upgrade: websocket\r\nConnection: Upgrade\r\n"),
            "{words}"
        );
    }

    #[test]
    fn what_is_no_request_for_a_proxy_is_told_as_such() {
        for text in ["GET https://a/ HTTP/1.1\r\n\r\n", "GET * HTTP/1.1\r\n\r\n", "CONNECT a HTTP/1.1\r\n\r\n"] {
            let error = read(text).wish().unwrap_err();
            assert!(bad(&error).starts_with(b"HTTP/1.1 400 Bad Request\r\n"));
        }
        assert_eq!(read("GET / HTTP/1.1\r\n\r\n").wish(), Ok(Wish::Own("/".to_owned())));
    }

    #[test]
    fn pages_of_the_port_are_not_for_sites_that_name_its_address() {
        let wish = |host: &str| read(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).wish();
        for host in ["127.0.0.1:1080", "[::1]:1080", "[::1]", "192.168.1.7", "localhost:1080", "localhost"] {
            assert_eq!(wish(host), Ok(Wish::Own("/".to_owned())), "{host}");
        }
        for host in ["evil.example:1080", "evil.example", "localhost.evil.example", ""] {
            assert_eq!(wish(host), Err(Bad::Host), "{host}");
        }
    }
}

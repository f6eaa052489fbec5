//! SOCKS5 as programs speak it (RFC 1928), with passwords (RFC 1929).
//!
//! The few fields are read here and not by a library. Those that there are make the connection to the target themselves, or
//! take a whole connection over: this port is told apart by its first byte, and answers when the far end has.

use crate::target::{BadTarget, TARGET_MAX, Target};

/// The first byte of a program that speaks SOCKS5.
pub(super) const VERSION: u8 = 5;

/// The longest greeting, password message and request, in bytes.
pub(super) const METHODS_MAX: usize = 2 + 255;
pub(super) const PASSWORD_MAX: usize = 3 + 255 + 255;
pub(super) const REQUEST_MAX: usize = 3 + TARGET_MAX;

/// The numbers of the methods, and of the answer that none will do.
pub(super) const NO_PASSWORD: u8 = 0;
pub(super) const WITH_PASSWORD: u8 = 2;
pub(super) const NO_METHOD: u8 = 0xff;

/// A command of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Connect,
    Associate,
    /// One that is not served.
    Other(u8),
}

/// Words that are none of SOCKS5.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bad {
    Version(u8),
    Target(BadTarget),
}

/// Words at the beginning of some bytes, and their length; `None` where more bytes are needed.
type Parsed<T> = Result<Option<(T, usize)>, Bad>;

/// A user's name and password.
pub(super) type Credentials = (Vec<u8>, Vec<u8>);

/// The methods that the program offers.
pub(super) fn methods(bytes: &[u8]) -> Parsed<Vec<u8>> {
    let Some(&version) = bytes.first() else { return Ok(None) };
    if version != VERSION {
        return Err(Bad::Version(version));
    }
    let Some(&count) = bytes.get(1) else { return Ok(None) };
    let length = 2 + usize::from(count);
    Ok(bytes.get(2..length).map(|methods| (methods.to_vec(), length)))
}

/// The name and the password.
pub(super) fn credentials(bytes: &[u8]) -> Parsed<Credentials> {
    let Some(&version) = bytes.first() else { return Ok(None) };
    if version != 1 {
        return Err(Bad::Version(version));
    }
    let field = |at: usize| {
        let length = usize::from(*bytes.get(at)?);
        Some((bytes.get(at + 1..at + 1 + length)?.to_vec(), at + 1 + length))
    };
    let both = field(1).and_then(|(user, at)| field(at).map(|(password, at)| ((user, password), at)));
    Ok(both)
}

/// The command and its target.
pub(super) fn request(bytes: &[u8]) -> Parsed<(Command, Target)> {
    let Some(&version) = bytes.first() else { return Ok(None) };
    if version != VERSION {
        return Err(Bad::Version(version));
    }
    let Some(&[_, command, _]) = bytes.first_chunk::<3>() else { return Ok(None) };
    let command = match command {
        1 => Command::Connect,
        3 => Command::Associate,
        other => Command::Other(other),
    };
    let target = Target::decode(&bytes[3..]).map_err(Bad::Target)?;
    Ok(target.map(|(target, length)| ((command, target), 3 + length)))
}

/// The answer to a request: a code, and an address that programs do not look at.
pub(super) fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

/// The answer to an association: where packets are to be sent.
pub(super) fn reply_with(address: std::net::SocketAddr) -> Vec<u8> {
    let mut reply = vec![VERSION, 0, 0];
    Target::from(address).encode(&mut reply);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_beginning_of_right_words_waits_for_more() {
        fn check<T: PartialEq + std::fmt::Debug>(words: &[u8], parse: impl Fn(&[u8]) -> Parsed<T>) -> T {
            for length in 0..words.len() {
                assert_eq!(parse(&words[..length]), Ok(None), "{length} of {words:?}");
            }
            let (read, length) = parse(&[words, b"more"].concat()).unwrap().unwrap();
            assert_eq!(length, words.len());
            read
        }
        assert_eq!(check(&[5, 2, 0, 2], methods), [0, 2]);
        assert_eq!(check(b"\x01\x02me\x03pwd", credentials), (b"me".to_vec(), b"pwd".to_vec()));
        let (command, target) = check(b"\x05\x01\0\x03\x0bexample.com\x01\xbb", request);
        assert_eq!((command, target.to_string().as_str()), (Command::Connect, "example.com:443"));
        assert_eq!(check(b"\x05\x02\0\x01\x01\x02\x03\x04\0\x50", request).0, Command::Other(2));
    }

    #[test]
    fn other_words_are_refused() {
        assert_eq!(methods(b"\x04\x01"), Err(Bad::Version(4)));
        assert_eq!(credentials(b"\x05"), Err(Bad::Version(5)));
        assert_eq!(request(b"\x05\x01\0\x07"), Err(Bad::Target(BadTarget::Kind(7))));
        assert!(matches!(request(b"\x05\x01\0\x03\x01/\0\x50"), Err(Bad::Target(BadTarget::Name(_)))));
    }
}

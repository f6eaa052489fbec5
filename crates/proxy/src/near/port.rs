//! The port for programs: SOCKS5 and HTTP, told apart by their first byte.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::BASE64;
use fairpath::{RecvStream, SendStream};
use subtle::ConstantTimeEq as _;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::associate::Entrance;
use super::conversation::{Conversation, Fault};
use super::http::{self, Wish};
use super::link::Link;
use super::page;
use super::socks5::{self, Command};
use crate::refusal::{Refusal, RefusalKind};
use crate::relay::{Side, relay, reset_whole};
use crate::snapshot::{Entry, Kind};
use crate::target::Target;
use crate::udp::Udp;
use crate::wire::Purpose;

/// How long a program may take to say what it wants.
const GREETED: Duration = Duration::from_secs(30);

/// How long it may take to read the last words of an answer.
const READ: Duration = Duration::from_secs(5);

/// The most connections of programs at once. More wait until the system refuses them.
const CONNECTIONS_MAX: usize = 16_384;

/// How programs are served.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) fast_open: bool,
    pub(super) password: Option<Password>,
}

/// The name and the password that programs have to show.
#[derive(Clone, PartialEq, Eq)]
pub struct Password {
    user: Vec<u8>,
    password: Vec<u8>,
}

/// A text that is no name and password. The caller is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name and a password are wanted on one line, as in `name:password`, each of 1 to 255 bytes")]
pub struct BadPassword;

impl Password {
    /// Reads `name:password`. A line end behind it does not count.
    ///
    /// # Errors
    ///
    /// [`BadPassword`] where one of them is empty or too long.
    pub fn parse(text: &str) -> Result<Self, BadPassword> {
        let (user, password) = text.trim_end_matches(['\r', '\n']).split_once(':').ok_or(BadPassword)?;
        let is_right = |word: &str| (1..=255).contains(&word.len()) && !word.contains(['\r', '\n']);
        match is_right(user) && is_right(password) {
            true => Ok(Self { user: user.into(), password: password.into() }),
            false => Err(BadPassword),
        }
    }

    fn is(&self, user: &[u8], password: &[u8]) -> bool {
        (self.user.ct_eq(user) & self.password.ct_eq(password)).into()
    }

    /// Whether a field `Proxy-Authorization` has it (RFC 7617).
    fn is_in(&self, field: &[u8]) -> bool {
        let Some((scheme, encoded)) = field.split_at_checked(6) else { return false };
        let decoded = BASE64.decode(encoded.trim_ascii()).unwrap_or_default();
        let Some(at) = decoded.iter().position(|byte| *byte == b':') else { return false };
        scheme.eq_ignore_ascii_case(b"Basic ") && self.is(&decoded[..at], &decoded[at + 1..])
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(hidden)")
    }
}

/// Serves programs for ever.
pub(super) async fn serve(listener: &TcpListener, link: &Arc<Link>, settings: &Arc<Settings>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((tcp, _)) => {
                let program = Program { link: link.clone(), settings: settings.clone() };
                tokio::spawn(async move {
                    program.serve(tcp).await;
                    drop(place);
                });
            }
            // Mostly there are too many open files: some will be closed.
            Err(error) => {
                tracing::debug!(%error, "a program's connection was not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

struct Program {
    link: Arc<Link>,
    settings: Arc<Settings>,
}

/// A wish that was understood, and how it is answered.
enum Asked {
    Socks(Command, Target),
    Http(Wish),
}

impl Program {
    async fn serve(self, tcp: TcpStream) {
        let mut conversation = Conversation::new(tcp);
        let Ok(Some(asked)) = timeout(GREETED, self.greeted(&mut conversation)).await else { return };
        match asked {
            Asked::Socks(Command::Connect, target) => self.connect_socks(conversation, target).await,
            Asked::Socks(Command::Associate, target) => self.associate(conversation, target.port).await,
            Asked::Socks(..) => end(conversation, &socks5::reply(RefusalKind::Unsupported.socks())).await,
            Asked::Http(Wish::Connect(target)) => self.connect_http(conversation, target, None).await,
            Asked::Http(Wish::Forward(target, words)) => self.connect_http(conversation, target, Some(words)).await,
            Asked::Http(Wish::Own(path)) => {
                let Some(port) = conversation.local_address() else { return };
                let state = self.link.state().borrow().clone();
                end(conversation, &page::answer(&path, port, &state)).await;
            }
        }
    }

    /// The wish of the program; `None` where it has none that is served, and was told so.
    async fn greeted(&self, conversation: &mut Conversation) -> Option<Asked> {
        let first = |bytes: &[u8]| Ok::<_, ()>(bytes.first().map(|first| (*first, 0)));
        match conversation.next(1, first).await.ok()? {
            socks5::VERSION => self.greeted_by_socks(conversation).await,
            b'A'..=b'Z' => self.greeted_by_http(conversation).await,
            _ => None,
        }
    }

    async fn greeted_by_socks(&self, conversation: &mut Conversation) -> Option<Asked> {
        let offered = conversation.next(socks5::METHODS_MAX, socks5::methods).await.ok()?;
        let method = if self.settings.password.is_some() { socks5::WITH_PASSWORD } else { socks5::NO_PASSWORD };
        if !offered.contains(&method) {
            conversation.say(&[socks5::VERSION, socks5::NO_METHOD]).await.ok()?;
            return None;
        }
        conversation.say(&[socks5::VERSION, method]).await.ok()?;
        if let Some(password) = &self.settings.password {
            let (user, shown) = conversation.next(socks5::PASSWORD_MAX, socks5::credentials).await.ok()?;
            let is_right = password.is(&user, &shown);
            conversation.say(&[1, u8::from(!is_right)]).await.ok()?;
            if !is_right {
                return None;
            }
        }
        match conversation.next(socks5::REQUEST_MAX, socks5::request).await {
            Ok((command, target)) => Some(Asked::Socks(command, target)),
            Err(Fault::Bad(socks5::Bad::Target(_))) => {
                // The number for kinds of addresses that are not served (RFC 1928, section 6).
                conversation.say(&socks5::reply(8)).await.ok()?;
                None
            }
            Err(_) => None,
        }
    }

    async fn greeted_by_http(&self, conversation: &mut Conversation) -> Option<Asked> {
        let head = match conversation.next(http::HEAD_MAX, http::head).await {
            Ok(head) => head,
            Err(Fault::Bad(bad)) => {
                conversation.say(&http::bad(&bad)).await.ok()?;
                return None;
            }
            Err(Fault::TooLong) => {
                let bad = http::Bad::Head(format!("its head is longer than {} bytes", http::HEAD_MAX));
                conversation.say(&http::bad(&bad)).await.ok()?;
                return None;
            }
            Err(Fault::Gone) => return None,
        };
        let is_right =
            |password: &Password| head.field("proxy-authorization").is_some_and(|field| password.is_in(field));
        match head.wish() {
            // Browsers read their settings before they know a password.
            Ok(Wish::Own(path)) if path.starts_with("/proxy.pac") => Some(Asked::Http(Wish::Own(path))),
            _ if !self.settings.password.as_ref().is_none_or(is_right) => {
                conversation.say(&http::password_wanted()).await.ok()?;
                None
            }
            Ok(wish) => Some(Asked::Http(wish)),
            Err(bad) => {
                conversation.say(&http::bad(&bad)).await.ok()?;
                None
            }
        }
    }

    async fn connect_socks(self, mut conversation: Conversation, target: Target) {
        let granted = socks5::reply(0);
        match self.open(&target).await {
            Ok(stream) => {
                if conversation.say(&granted).await.is_ok() {
                    self.carry(conversation, stream, &target).await;
                }
            }
            Err(refusal) => {
                tracing::debug!(%refusal, "a program's connection was refused");
                end(conversation, &socks5::reply(refusal.kind.socks())).await;
            }
        }
    }

    /// Connects to a target, and sends the words of a request there where there are some.
    async fn connect_http(self, mut conversation: Conversation, target: Target, words: Option<Vec<u8>>) {
        use tokio::io::AsyncWriteExt as _;
        match self.open(&target).await {
            Ok(mut stream) => {
                let said = match &words {
                    Some(words) => stream.0.write_all(words).await,
                    None => conversation.say(http::CONNECTED).await,
                };
                match said {
                    Ok(()) => self.carry(conversation, stream, &target).await,
                    Err(error) => {
                        let words = format!("the far end is gone: {error}");
                        end(conversation, &http::refused(&Refusal::new(RefusalKind::NotConnected, words))).await;
                    }
                }
            }
            Err(refusal) => end(conversation, &http::refused(&refusal)).await,
        }
    }

    /// Packets of the program, which sends them from this port, or from any where it is 0.
    async fn associate(self, mut conversation: Conversation, port: u16) {
        let addresses = conversation.local_address().zip(conversation.peer_address());
        let Some((here, program)) = addresses else { return };
        let associated = async {
            let failed = |error| Refusal::new(RefusalKind::Failed, format!("no socket for packets: {error}"));
            let socket = Udp::new(UdpSocket::bind((here.ip(), 0)).await.map_err(failed)?);
            let at = socket.local_addr().map_err(failed)?;
            Ok::<_, Refusal>((socket, at, self.link.associate(None).await?))
        };
        match associated.await {
            Ok((socket, at, (association, (_send, recv)))) => {
                if conversation.say(&socks5::reply_with(at)).await.is_ok() {
                    let any = Target::from(std::net::SocketAddr::from(([0, 0, 0, 0], 0)));
                    let entry = self.link.enter(&any, Kind::Udp);
                    let entrance = Entrance { entry, socket, program: program.ip(), port: (port > 0).then_some(port) };
                    entrance.carry(conversation.into_parts().0, association, recv).await;
                }
            }
            Err(refusal) => {
                tracing::debug!(%refusal, "an association was refused");
                end(conversation, &socks5::reply(refusal.kind.socks())).await;
            }
        }
    }

    /// A stream to the target; joined to it already, unless programs are answered at once.
    async fn open(&self, target: &Target) -> Result<(SendStream, RecvStream), Refusal> {
        match self.settings.fast_open {
            true => self.link.open(Purpose::Connect, target).await,
            false => self.link.connect(target).await,
        }
    }

    async fn carry(&self, conversation: Conversation, stream: (SendStream, RecvStream), target: &Target) {
        let (tcp, first) = conversation.into_parts();
        let entry = self.link.enter(target, Kind::Tcp);
        match self.settings.fast_open {
            true => carry_fast(tcp, first, stream, (target, &entry)).await,
            false => relay(tcp, first, stream, Side::Program, &entry).await,
        }
    }
}

/// Sends what the program has said already, and goes on once the far end has connected.
async fn carry_fast(
    tcp: TcpStream,
    mut first: Bytes,
    (mut send, mut recv): (SendStream, RecvStream),
    (target, entry): (&Target, &Entry),
) {
    use tokio::io::AsyncWriteExt as _;
    if first.is_empty() {
        // Its first words are mostly all that it says before an answer: they go along with the wish.
        let _ = timeout(Duration::from_millis(20), tcp.readable()).await;
        let mut words = vec![0; 16 << 10];
        if let Ok(length) = tcp.try_read(&mut words)
            && length > 0
        {
            words.truncate(length);
            first = words.into();
        }
    }
    entry.count(first.len(), 0);
    let sent = send.write_all(&first).await.map_err(|error| Refusal::new(RefusalKind::NotConnected, error));
    let answered = match sent {
        Ok(()) => Link::answered(&mut recv, target).await,
        Err(refusal) => Err(refusal),
    };
    match answered {
        Ok(()) => relay(tcp, Bytes::new(), (send, recv), Side::Program, entry).await,
        Err(refusal) => {
            tracing::debug!(%refusal, "a connection that was answered at once failed");
            reset_whole(tcp);
        }
    }
}

/// Says the last words, and gives the program a while to read them.
async fn end(conversation: Conversation, words: &[u8]) {
    let _ = timeout(READ, conversation.end(words)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_in_both_protocols_and_never_shown() {
        let password = Password::parse("me:se:cret\n").unwrap();
        assert!(password.is(b"me", b"se:cret") && !password.is(b"me", b"other") && !password.is(b"you", b"se:cret"));
        let field = format!("basic  {}", BASE64.encode(b"me:se:cret"));
        assert!(password.is_in(field.as_bytes()) && !password.is_in(b"Basic x") && !password.is_in(b"Bearer abc"));
        assert_eq!(format!("{password:?}"), "Password(hidden)");
        for text in ["", "me", ":x", "me:", &format!("me:{}", "x".repeat(256)), "me:a\nb"] {
            assert_eq!(Password::parse(text), Err(BadPassword), "{text}");
        }
    }
}

//! `fairpath stream recv`.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use fairpath_proxy::End;
use fairpath_quic::Connection;
use fairpath_report::text::print_line;
use fairpath_transfer::{Admission, AdmissionError, Guest, Purpose};
use tokio::task::JoinSet;

use super::RecvArgs;
use super::carry::{Ended, carry};
use super::port::Port;
use super::protocol;
use super::send::{BY_COST, begin, check};
use super::view::View;
use crate::attempts::AttemptReporter;
use crate::ends::{Host, say_goodbye};
use crate::error::describe;
use crate::later::PRINTED;
use crate::path_facts::{Books, NoPathLeft};
use crate::signals::Interruption;
use crate::transfer::TICK;

pub(super) async fn run(args: RecvArgs) -> anyhow::Result<()> {
    check(args.to.len(), "--to")?;
    args.listen.check_live_flows()?;
    args.listen.paths().check_receiving()?;
    let mut ports = Vec::new();
    for place in &args.to {
        ports.push(Port::towards(place).await?);
    }
    let view = View::open(args.flow).await?;
    let mut books = Books::open(args.listen.paths().all())?;
    books.announce(|line| view.say(line));
    books.running.listen(End::Stream, "stream", "sender", BY_COST);
    let host = args.listen.open(&books).await?;
    print_line(&host.ticket.to_string())?;
    let mut desk = Desk {
        host,
        ports: ports.into(),
        view,
        interruption: Interruption::listen()?,
        attempts: AttemptReporter::default(),
        books,
        args,
    };
    let addresses: Vec<String> = desk.host.listener.addresses().iter().map(ToString::to_string).collect();
    desk.view.say(&format!("waiting on {}", addresses.join(", ")));
    let result = desk.run().await;
    desk.host.listener.close(0, "the receiver has ended").await;
    result
}

/// Where senders come in, one after the other.
struct Desk {
    host: Host,
    ports: Arc<[Port]>,
    view: View,
    interruption: Interruption,
    attempts: AttemptReporter,
    books: Books,
    args: RecvArgs,
}

/// A peer at admission.
type Heard = Result<(Guest, Connection), AdmissionError>;

impl Desk {
    async fn run(&mut self) -> anyhow::Result<()> {
        while let Some((connection, mut arriving, admission)) = self.admit().await? {
            let ended = {
                let Self { ports, view, interruption, args, host, attempts, books } = self;
                let carried = serve(&connection, ports, view, (books, interruption), args);
                tokio::pin!(carried);
                loop {
                    tokio::select! {
                        ended = &mut carried => break ended,
                        // Others are told that the ticket is in use.
                        connection = host.listener.accept() => {
                            let connection = connection.context("the network sockets are gone")?;
                            arriving.spawn(hear(connection, admission.clone()));
                        }
                        Some(Ok(Err(refused))) = arriving.join_next() => attempts.rang(&refused),
                        // The sender that is there is told by itself.
                        ticket = host.later.ticket() => print_line(&ticket.to_string())?,
                    }
                }
            };
            match ended {
                Ok(Ended::Asked) => {
                    say_goodbye(&connection).await;
                    return Ok(());
                }
                Ok(Ended::ByPeer) if !self.args.keep => {
                    self.view.say("the sender has ended");
                    return Ok(());
                }
                Ok(Ended::ByPeer) => self.view.say("the sender has ended; waiting for the next"),
                Ok(Ended::Lost(error)) => self.view.say(&format!("connection lost ({error}); waiting for the sender")),
                Err(error) if error.is::<NoPathLeft>() => {
                    say_goodbye(&connection).await;
                    return Err(error);
                }
                Err(error) => self.view.say(&format!("{}; still waiting", describe(&error))),
            }
        }
        Ok(())
    }

    /// Waits for the next sender that has the secret; `None` where somebody asks to end.
    async fn admit(&mut self) -> anyhow::Result<Option<(Connection, JoinSet<Heard>, Arc<Admission>)>> {
        let admission = Arc::new(Admission::new(self.host.ticket.secret.clone(), Purpose::Stream));
        let mut arriving: JoinSet<Heard> = JoinSet::new();
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                connection = self.host.listener.accept() => {
                    arriving.spawn(hear(connection.context("the network sockets are gone")?, admission.clone()));
                }
                Some(heard) = arriving.join_next() => match heard.context("admission ended in a fault of this program")? {
                    Ok((guest, connection)) => match guest.welcome().await {
                        Ok(()) => {
                            admission.use_up();
                            return Ok(Some((connection, arriving, admission)));
                        }
                        Err(refused) => self.attempts.rang(&refused),
                    },
                    Err(refused) => self.attempts.rang(&refused),
                },
                _ = tick.tick() => {
                    if let Some(line) = self.attempts.news(self.host.listener.accept_stats(), Instant::now()) {
                        self.view.say(&line);
                    }
                }
                ticket = self.host.later.ticket() => {
                    print_line(&ticket.to_string())?;
                    self.view.say(PRINTED);
                }
                () = self.interruption.asked() => return Ok(None),
            }
        }
    }
}

async fn hear(connection: Connection, admission: Arc<Admission>) -> Heard {
    Ok((admission.hear(&connection).await?, connection))
}

async fn serve(
    connection: &Connection,
    ports: &Arc<[Port]>,
    view: &mut View,
    (books, interruption): (&mut Books, &Interruption),
    args: &RecvArgs,
) -> anyhow::Result<Ended> {
    let deadline = tokio::select! {
        deadline = protocol::answer(connection, ports.len()) => deadline?,
        () = interruption.asked() => return Ok(Ended::Asked),
    };
    begin(connection, args.flow, ports.len(), deadline);
    view.say(&format!("a sender is there, with a deadline of {deadline:?}"));
    carry(connection, ports, view, &mut None, books, interruption).await
}

//! `fairpath stream send`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use fairpath_proxy::End;
use fairpath_quic::flows::{Config, FLOWS_MAX};
use fairpath_quic::{Connection, Pauses};
use fairpath_report::text::clock;
use fairpath_transfer::{SenderId, Ticket};

use super::carry::{Ended, carry};
use super::control::Control;
use super::port::Port;
use super::protocol::{self, NotBegun};
use super::view::View;
use super::{FlowArgs, SendArgs};
use crate::ends::{connect, say_goodbye};
use crate::error::{Interrupted, UsageError};
use crate::path_facts::Books;
use crate::signals::Interruption;

/// The scheduler by which live flows choose their paths.
pub(super) const BY_COST: &str = "deadline";

pub(super) async fn run(args: SendArgs) -> anyhow::Result<()> {
    let (more, mut ticket) = args.ticket.take(args.words.clone())?;
    if !more.is_empty() {
        return Err(UsageError("one word is expected, the ticket, and several are given".into()).into());
    }
    check(args.from.len(), "--from")?;
    args.connect.check_live_flows()?;
    let mut ports = Vec::new();
    for place in &args.from {
        ports.push(Port::at(place).await?);
    }
    let ports: Arc<[Port]> = ports.into();
    let control = args.budget.as_deref().map(Control::at).transpose()?;
    let mut control = Some(control.unwrap_or_else(Control::none));
    let interruption = Interruption::listen()?;
    let id = SenderId::generate().context("the system gives no randomness")?;
    let mut view = View::open(args.flow).await?;
    let mut books = Books::open(args.connect.paths().all())?;
    books.announce(|line| view.say(line));
    books.running.listen(End::Stream, "stream", "receiver", BY_COST);
    let (mut lost_at, mut pause): (Option<Instant>, _) = (None, Duration::ZERO);
    loop {
        let talk = Talk { args: &args, id, ports: &ports, interruption: &interruption };
        let lost = match talk.converse(&mut ticket, &mut view, &mut control, &mut books).await? {
            Turn::Over => return Ok(()),
            // A first connection that fails is an error at once: no stream was interrupted.
            Turn::Lost { why, has_begun: false } if lost_at.is_none() => return Err(why),
            Turn::Lost { why, has_begun } => {
                if has_begun {
                    (lost_at, pause) = (None, Duration::ZERO);
                }
                why
            }
        };
        if lost_at.get_or_insert_with(Instant::now).elapsed() >= args.give_up_after {
            return Err(lost);
        }
        view.say(&format!("connection lost ({lost:#}); trying again, giving up in {}", clock(args.give_up_after)));
        pause = Pauses::DEFAULT.after(pause);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = interruption.asked() => bail!(Interrupted("interrupted while there was no connection".into())),
        }
    }
}

/// Whether so many flows can be.
pub(super) fn check(flows: usize, option: &str) -> Result<(), UsageError> {
    match flows {
        0..=FLOWS_MAX => Ok(()),
        _ => Err(UsageError(format!("{flows} times {option} is given: there may be up to {FLOWS_MAX} flows"))),
    }
}

/// The outcome of one connection.
enum Turn {
    Over,
    Lost { why: anyhow::Error, has_begun: bool },
}

/// All that stays the same over the connections.
struct Talk<'a> {
    args: &'a SendArgs,
    id: SenderId,
    ports: &'a Arc<[Port]>,
    interruption: &'a Interruption,
}

impl Talk<'_> {
    async fn converse(
        &self,
        ticket: &mut Ticket,
        view: &mut View,
        control: &mut Option<Control>,
        books: &mut Books,
    ) -> anyhow::Result<Turn> {
        let Self { args, id, ports, interruption } = *self;
        let config = args.connect.config(ticket, books)?;
        let connection = tokio::select! {
            connection = connect(&config) => connection,
            () = interruption.asked() => bail!(Interrupted("interrupted before the receiver had answered".into())),
        };
        let connection = match connection {
            Ok(connection) => connection,
            Err(error) if error.is_lasting() => return Err(error.into()),
            Err(error) => return Ok(Turn::Lost { why: error.into(), has_begun: false }),
        };
        let asked = tokio::select! {
            asked = protocol::ask(&connection, &ticket.secret, id, ports.len(), args.deadline) => asked,
            () = interruption.asked() => bail!(Interrupted("interrupted before the receiver had answered".into())),
        };
        match asked {
            Ok(()) => {}
            Err(NotBegun::Refused(why)) => {
                say_goodbye(&connection).await;
                return Err(why);
            }
            Err(NotBegun::Lost(why)) => return Ok(Turn::Lost { why, has_begun: false }),
        }
        begin(&connection, args.flow, ports.len(), args.deadline);
        match carry(&connection, ports, view, control, books, interruption).await {
            Ok(Ended::Asked) => say_goodbye(&connection).await,
            Ok(Ended::ByPeer) => view.say("the receiver has ended"),
            Ok(Ended::Lost(error)) => {
                // The receiver may have told of others since.
                ticket.addresses = connection.peer_addresses();
                return Ok(Turn::Lost { why: anyhow!("{error}"), has_begun: true });
            }
            Err(error) => {
                say_goodbye(&connection).await;
                return Err(error);
            }
        }
        Ok(Turn::Over)
    }
}

/// Lets packets of flows in and out.
pub(super) fn begin(connection: &Connection, args: FlowArgs, flows: usize, deadline: Duration) {
    connection.begin_flows(Config {
        flows: flows as u8,
        deadline,
        copies: args.copies(),
        playout: args.playout(),
        repair: !args.no_repair,
    });
}

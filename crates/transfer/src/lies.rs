//! A receiver that lies, for simulations: what is promised to senders has to hold against all of it.

use std::time::Duration;

use fairpath_quic::Connection;

use crate::admission::Admission;
use crate::error::ReceiveError;
use crate::greeting::Purpose;
use crate::parcel::{self, Item, PARCEL};
use crate::protocol::{Control, DONE_CODE, DONE_WORD, Digest, FromReceiver, FromSender, Proof};
use crate::skip::Reason;
use crate::ticket::Secret;

/// A lie of a receiver that keeps nothing of what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// It closes in peace before it has heard what is offered.
    DoneAtOnce,
    /// It closes in peace after its plan.
    DoneAfterPlan,
    /// It closes in peace once all data have come.
    DoneAfterData,
    /// It calls everything complete after its plan.
    CompleteAfterPlan,
    /// It says that an earlier connection has brought everything.
    HasAll,
    /// The same, but of the second connection, when the first has brought something.
    HasAllLater,
    /// It says that all files are there, and asked for nothing to compare them with.
    SameGuessed,
    /// It says that all files are there, and repeats what the sender said of them.
    SameRepeated,
    /// It says that it has parts of all files, and then that they are whole.
    HavePretended,
    /// It says of each file that came that it is in place, and repeats what the sender said of it.
    DoneRepeated,
    /// It wants every file again, without end.
    Again,
    /// It leaves everything out, and says so.
    LeavesAllOut,
    /// It says that it writes and reads, and never ends.
    NeverEnds,
    /// It breaks the rules below the messages.
    BreaksChannel,
    /// It says what is no message.
    Nonsense,
}

impl Lie {
    /// Each of them.
    pub const ALL: [Self; 15] = [
        Self::DoneAtOnce,
        Self::DoneAfterPlan,
        Self::DoneAfterData,
        Self::CompleteAfterPlan,
        Self::HasAll,
        Self::HasAllLater,
        Self::SameGuessed,
        Self::SameRepeated,
        Self::HavePretended,
        Self::DoneRepeated,
        Self::Again,
        Self::LeavesAllOut,
        Self::NeverEnds,
        Self::BreaksChannel,
        Self::Nonsense,
    ];
}

const GUESS: Proof = [7; 16];

/// Lets the sender in and lies to it on its connection number `nth`, from 0, until that ends.
///
/// # Errors
///
/// The sender has had enough of it.
pub async fn lie(connection: &Connection, secret: &Secret, lie: Lie, nth: usize) -> Result<(), ReceiveError> {
    let control = Admission::new(secret.clone(), Purpose::Transfer).hear(connection).await?.admit().await?;
    let has_all = lie == Lie::HasAll || lie == Lie::HasAllLater && nth > 0;
    control.write(&FromReceiver::Terms { hidden: true, has_all, in_order: false }).await?;
    match lie {
        Lie::DoneAtOnce => connection.close(DONE_CODE, DONE_WORD),
        Lie::BreaksChannel => connection.break_channel(),
        Lie::Nonsense => control.connection.send_message(vec![0xff; 100].into()).await.map_err(gone)?,
        _ if has_all => control.write(&FromReceiver::Arrived(GUESS)).await?,
        _ => lie_of_files(&control, lie).await?,
    }
    connection.closed().await;
    Ok(())
}

fn gone(error: fairpath_quic::SendError) -> ReceiveError {
    crate::protocol::ProtocolError::from(error).into()
}

async fn lie_of_files(control: &Control, lie: Lie) -> Result<(), ReceiveError> {
    let mut files: Vec<(u32, u64)> = Vec::new();
    let mut count = 0;
    loop {
        match control.read().await? {
            FromSender::Entries(entries) => {
                let numbered = (count..).zip(&entries).filter(|(_, entry)| entry.is_file());
                files.extend(numbered.map(|(number, entry)| (number, entry.size())));
                count += entries.len() as u32;
            }
            FromSender::EntriesEnd => break,
            _ => {}
        }
    }
    let all: Vec<u32> = files.iter().map(|(number, _)| *number).collect();
    let repeats = lie == Lie::SameRepeated && !all.is_empty();
    if repeats {
        control.write(&FromReceiver::Compare(all.clone())).await?;
    }
    control.write(&FromReceiver::Compare(vec![])).await?;
    let mut tags: Vec<Digest> = Vec::new();
    while repeats && tags.len() < all.len() {
        if let FromSender::Tags(more) = control.read().await? {
            tags.extend(more.into_iter().map(Result::unwrap_or_default));
        }
    }
    match lie {
        Lie::SameGuessed => said(control, FromReceiver::Same, all.iter().map(|file| (*file, GUESS))).await?,
        Lie::SameRepeated => {
            let proofs = tags.iter().map(repeated);
            said(control, FromReceiver::Same, all.iter().copied().zip(proofs)).await?;
        }
        Lie::LeavesAllOut => {
            let left_out = all.iter().map(|file| (*file, Reason::Unwritable)).collect();
            control.write(&FromReceiver::LeftOut(left_out)).await?;
        }
        Lie::HavePretended => {
            for &(file, size) in files.iter().filter(|(_, size)| *size > 0) {
                control.write(&FromReceiver::Have { file, ranges: vec![(0, size)] }).await?;
            }
        }
        _ => {}
    }
    control.write(&FromReceiver::Begin).await?;
    match lie {
        Lie::DoneAfterPlan => control.connection.close(DONE_CODE, DONE_WORD),
        Lie::CompleteAfterPlan | Lie::SameGuessed | Lie::SameRepeated | Lie::LeavesAllOut => {
            control.write(&FromReceiver::Complete).await?;
        }
        Lie::NeverEnds => loop {
            control.write(&FromReceiver::Written(u64::MAX)).await?;
            control.write(&FromReceiver::Examined(1)).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        },
        _ => lie_of_data(control, lie, files.len()).await?,
    }
    Ok(())
}

/// Takes all data, and says what is not so of them.
async fn lie_of_data(control: &Control, lie: Lie, files: usize) -> Result<(), ReceiveError> {
    let mut ended = 0;
    while ended < files {
        let record = control.connection.recv_record().await.map_err(crate::protocol::ProtocolError::from)?;
        let items = if record.object == PARCEL { &record.data[..] } else { &[] };
        for item in parcel::items(items) {
            let (file, tag) = match item? {
                Item::Content { file, tag, .. } | Item::Tag { file, tag } | Item::Ended { file, tag, .. } => {
                    (file, tag)
                }
                Item::Zeros { .. } | Item::LeftOut { .. } => continue,
            };
            ended += 1;
            match lie {
                Lie::DoneRepeated => said(control, FromReceiver::Done, [(file, repeated(&tag))].into_iter()).await?,
                Lie::HavePretended => said(control, FromReceiver::Done, [(file, GUESS)].into_iter()).await?,
                Lie::Again => {
                    control.write(&FromReceiver::Again(file)).await?;
                    ended -= 1;
                }
                _ => {}
            }
        }
    }
    if lie == Lie::DoneAfterData {
        control.connection.close(DONE_CODE, DONE_WORD);
    }
    Ok(())
}

/// The beginning of what the sender said.
fn repeated(tag: &Digest) -> Proof {
    let (first, _) = tag.split_first_chunk().expect("32 are more than 16");
    *first
}

async fn said(
    control: &Control,
    word: impl Fn(Vec<(u32, Proof)>) -> FromReceiver,
    files: impl Iterator<Item = (u32, Proof)>,
) -> Result<(), ReceiveError> {
    Ok(control.write(&word(files.collect())).await?)
}

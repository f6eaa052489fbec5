//! A sender believes nothing of a receiver that lies.

use std::time::Duration;

use fairpath_faults::{Fault, LiedTo, Scheduled, Transfer, Wire};
use fairpath_transfer::Lie;
use rayon::prelude::*;

/// How long is waited for the sender to end: longer than it bears a connection on which nothing moves.
const PATIENCE: Duration = Duration::from_secs(900);

/// Some 300 kB over two wires, which takes less than a second. In a tree of them some files are empty.
fn transfer(faults: &[(u64, Fault)]) -> Transfer {
    let scheduled = |(whole, &(at, fault)): (usize, &_)| Scheduled { at: Duration::from_millis(at), fault, whole };
    Transfer {
        wires: vec![Wire::new(4, 10), Wire::new(4, 30)],
        bytes: 300_000,
        faults: faults.iter().enumerate().map(scheduled).collect(),
        ..Transfer::of(1)
    }
}

fn lied_to(transfer: &Transfer, lie: Lie) -> LiedTo {
    let ended = transfer.run_lied_to(lie, PATIENCE).unwrap_or_else(|failure| panic!("{lie:?}: {failure}\n{transfer}"));
    ended.unwrap_or_else(|| panic!("{lie:?}: the sender does not end\n{transfer}"))
}

#[test]
fn a_sender_believes_nothing_that_a_receiver_cannot_prove() {
    Lie::ALL.into_par_iter().for_each(|lie| {
        let ended = lied_to(&transfer(&[]), lie);
        assert_eq!(ended.claimed, 0, "{lie:?}: {ended:?}");
        // Files that are left out are no success either: each is named.
        assert_eq!(ended.error.is_none(), lie == Lie::LeavesAllOut, "{lie:?}: {ended:?}");
        assert_eq!(ended.skipped > 0, lie == Lie::LeavesAllOut, "{lie:?}: {ended:?}");
        let error = ended.error.unwrap_or_default();
        let expected = match lie {
            Lie::DoneAtOnce | Lie::DoneAfterPlan | Lie::DoneAfterData => "has not proved",
            Lie::HasAll => "the files were others or have changed",
            // It takes the data of the first connection, and goes on to say nothing.
            Lie::HasAllLater | Lie::NeverEnds => "no progress for 10 min",
            Lie::SameRepeated | Lie::DoneRepeated => "its proof is wrong",
            Lie::SameGuessed => "a file that it was not sent",
            Lie::HavePretended => "its proof is wrong",
            Lie::CompleteAfterPlan => "calls the transfer complete while files are missing",
            Lie::Again => "wants a file again that was not offered, or more than once",
            Lie::LeavesAllOut => "",
            Lie::BreaksChannel => "the peer broke the protocol",
            Lie::Nonsense => "cannot be understood",
        };
        assert!(error.contains(expected), "{lie:?}: {error}");
        // None of it gets better by trying again.
        assert_eq!(ended.connections, 1, "{lie:?}");
        if !error.contains("no progress") {
            assert!(ended.virtual_time < Duration::from_secs(10), "{lie:?}: {:?}", ended.virtual_time);
        }
    });
}

/// All links are cut for longer than a connection lives, and the receiver uses that.
#[test]
fn a_sender_that_comes_back_is_told_no_lie_about_what_arrived() {
    let transfer = transfer(&[(150, Fault::All(false)), (20_000, Fault::All(true))]);
    let ended = lied_to(&transfer, Lie::HasAllLater);
    assert!(ended.connections > 1, "{ended:?}");
    let error = ended.error.expect("no success");
    assert!(error.contains("the files were others or have changed"), "{error}");
}

#[test]
fn no_fault_of_the_network_makes_a_lie_true() {
    let all: Vec<(Lie, u64)> = Lie::ALL.into_iter().flat_map(|lie| (0..6).map(move |seed| (lie, seed))).collect();
    all.into_par_iter().for_each(|(lie, seed)| {
        let transfer = Transfer::of(seed);
        if let Some(ended) =
            transfer.run_lied_to(lie, Duration::from_secs(60)).unwrap_or_else(|error| panic!("{error}"))
        {
            let is_success = ended.error.is_none() && ended.skipped == 0;
            assert!(ended.claimed == 0 && !is_success, "{lie:?}, seed {seed}: {ended:?}");
        }
    });
}

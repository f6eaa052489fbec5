//! Devices: invitations, keys, revocation.

use std::time::{Duration, Instant};

use fairpath::{Endpoint, Fingerprint};
use fairpath_proxy::{Denial, ExamineConfig, FarNotice, JoinError, NearNotice, examination_max, examine, join};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::ends::{Ends, FarEnd, LIMIT, late_echo, name, via};

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_lets_one_device_in_and_is_worth_nothing_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let mut far = FarEnd::start(folder.path().join("far"), 0).await;
    let ticket = far.state().invite(&name("van"), &[]).unwrap();
    let near = folder.path().join("near");
    assert_eq!(join(&near, &ticket, &via()).await.unwrap(), "van");
    far.told(|notice| *notice == FarNotice::Joined(name("van"))).await;
    let second = join(&folder.path().join("second"), &ticket, &via()).await;
    assert!(matches!(second, Err(JoinError::Denied(Denial::Invitation))), "{second:?}");
    assert!(!folder.path().join("second/device").exists(), "no key is kept where nothing was joined");

    let devices = far.state().devices().unwrap();
    assert_eq!(devices.known.len(), 1);
    assert!(devices.invited.is_empty());
    // The private key is at the near end only, and the secret is nowhere.
    let authorized = std::fs::read_to_string(folder.path().join("far/authorized")).unwrap();
    assert!(authorized.starts_with("van ed25519:"), "{authorized}");
    // A place where no file can be kept costs no invitation.
    let ticket = far.state().invite(&name("truck"), &[]).unwrap();
    let closed = join(std::path::Path::new("/proc/self/task"), &ticket, &via()).await;
    assert!(matches!(closed, Err(JoinError::State(_))), "{closed:?}");
    assert_eq!(join(&folder.path().join("truck"), &ticket, &via()).await.unwrap(), "truck");
    // A wrong secret with a right label is no invitation.
    let ticket = far.state().invite(&name("laptop"), &[]).unwrap();
    far.state().revoke(&name("laptop")).unwrap();
    let withdrawn = join(&folder.path().join("third"), &ticket, &via()).await;
    assert!(matches!(withdrawn, Err(JoinError::Denied(Denial::Invitation))), "{withdrawn:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_get_nothing_beyond_the_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let mut far = FarEnd::start(folder.path().join("far"), 0).await;
    let ticket = far.state().invite(&name("van"), &[]).unwrap();
    let fingerprint = Fingerprint::from(ticket.fingerprint);
    let stranger = Endpoint::builder().alpn(b"fairpath-proxy/1").via(["127.0.0.1"]).bind().unwrap();

    let connection = stranger.connect(far.addresses.clone(), fingerprint).await.unwrap();
    // No stream may be opened: the far end gives no credit for any.
    assert!(timeout(Duration::from_millis(500), connection.open_bi()).await.is_err());
    connection.send_message(&b"GET / HTTP/1.1\r\n\r\n"[..]).await.unwrap();
    let ended = timeout(LIMIT, connection.closed()).await.expect("it is sent away");
    assert!(ended.to_string().contains(&Denial::Malformed.to_string()), "{ended}");
    far.told(|notice| matches!(notice, FarNotice::Denied(1, _))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_device_is_gone_within_a_second_and_its_programs_are_told() {
    let (mut ends, echo) = (Ends::start().await, late_echo().await);
    let (mut tcp, code) = ends.socks(&echo).await;
    assert_eq!(code, 0);
    tcp.write_all(b"words").await.unwrap();
    ends.far.state().revoke(&name("van")).unwrap();
    let begun = Instant::now();
    let read = timeout(LIMIT, tcp.read_u8()).await.expect("in time");
    assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    ends.near_told(|notice| *notice == NearNotice::Lost(Denial::Revoked.to_string())).await;
    ends.near_told(|notice| *notice == NearNotice::Denied(Denial::UnknownKey)).await;
    assert!(ends.far.state().devices().unwrap().known.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_changes_holds_at_once_for_a_device_that_is_connected() {
    let (ends, echo) = (Ends::start().await, late_echo().await);
    assert_eq!(ends.socks(&echo).await.1, 0);
    let file = ends.folder.path().join("far/authorized");
    let line = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, line.replace(",127.0.0.0/8", "")).unwrap();
    let begun = Instant::now();
    while ends.socks(&echo).await.1 != 2 {
        assert!(begun.elapsed() < LIMIT);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The device is still there: only what it reaches has changed.
    assert_eq!(ends.far.state().devices().unwrap().known.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_far_end_that_is_started_anew_is_found_again() {
    let (mut ends, echo) = (Ends::start().await, late_echo().await);
    assert_eq!(ends.socks(&echo).await.1, 0);
    let (state, port) = (ends.far.state.clone(), ends.far.addresses[0].port());
    let (mut tcp, _) = ends.socks(&echo).await;
    ends.far.stop().await;
    ends.near_told(|notice| matches!(notice, NearNotice::Lost(_))).await;
    assert!(timeout(LIMIT, tcp.read_u8()).await.expect("in time").is_err(), "the program is told");
    ends.far = FarEnd::start(state, port).await;
    ends.near_told(|notice| *notice == NearNotice::Connected("van".to_owned())).await;
    let (mut tcp, code) = ends.socks(&echo).await;
    assert_eq!(code, 0);
    tcp.write_all(b"again").await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut all = Vec::new();
    tcp.read_to_end(&mut all).await.unwrap();
    assert_eq!(all, b"again");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_examination_measures_each_link_and_all_together() {
    let ends = Ends::start().await;
    let time = Duration::from_millis(300);
    let mut steps = Vec::new();
    let config = ExamineConfig { state: ends.folder.path().join("near"), via: via(), time };
    let examined = examine(config, |step| steps.push(step)).await.unwrap();
    assert_eq!(steps[0], format!("2 links, {} s at most", examination_max(2, 0, time).as_secs()));
    assert_eq!(steps[1..], ["127.0.0.1 alone", "127.0.0.2 alone", "all together"]);
    for one in &examined.interfaces {
        assert_eq!((&one.unreached, one.is_translated()), (&None, Some(false)), "{one:?}");
        assert!(one.answers.len() == 1 && one.answers[0].1.is_some(), "{one:?}");
        assert!(one.mtu >= Some(1_228) && one.ports.is_empty(), "{one:?}");
        let rates = one.down.zip(one.up).unwrap();
        assert!(rates.0.as_bps() > 1_000_000 && rates.1.as_bps() > 1_000_000, "{one:?}");
    }
    let together = examined.together.as_ref().unwrap();
    assert!(together.down.as_bps() > 1_000_000 && together.up.as_bps() > 1_000_000, "{together:?}");
    assert!(!examined.words().is_empty());
    let unknown = ExamineConfig { state: ends.folder.path().join("near"), via: vec!["no-such-link0".into()], time };
    let error = examine(unknown, |_| ()).await.unwrap_err().to_string();
    assert!(error.contains("'no-such-link0'"), "{error}");
}

//! Forwards, ports of the far end, and packets of UDP.

use std::net::SocketAddr;
use std::time::Duration;

use fairpath::{Bitrate, PathTerms};
use fairpath_proxy::{Forward, NearConfig, NearNotice, Reverse};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::ends::{Ends, FarEnd, LIMIT, late_echo, near_config, via};

/// A port of this machine that is free at this moment.
async fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// Sends `words` and reads the answer until its end.
async fn exchange(address: SocketAddr, words: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut tcp = TcpStream::connect(address).await?;
    tcp.write_all(words).await?;
    tcp.shutdown().await?;
    let mut answer = Vec::new();
    timeout(LIMIT, tcp.read_to_end(&mut answer)).await.expect("in time")?;
    Ok(answer)
}

/// A host that sends each packet back.
async fn echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&buffer[..length], from).await;
        }
    });
    address
}

/// Sends a packet again and again until `is_it` an answer: packets may be lost.
async fn asked(socket: &UdpSocket, to: SocketAddr, packet: &[u8], is_it: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 65_536];
    let until = tokio::time::Instant::now() + LIMIT;
    loop {
        assert!(tokio::time::Instant::now() < until, "no answer to a packet of {} bytes", packet.len());
        socket.send_to(packet, to).await.unwrap();
        let came = timeout(Duration::from_millis(300), socket.recv_from(&mut buffer)).await;
        if let Ok(Ok((length, _))) = came
            && is_it(&buffer[..length])
        {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_forwarded_to_targets_by_tcp_and_udp() {
    let (tcp, udp) = (late_echo().await, echo().await);
    let (at, there) = (free_port().await, free_port().await);
    let forwards: Vec<Forward> =
        vec![format!("tcp:{at}={tcp}").parse().unwrap(), format!("udp:{there}={udp}").parse().unwrap()];
    let _ends = Ends::with_ports(false, None, (forwards, Vec::new())).await;
    assert_eq!(exchange(SocketAddr::from(([127, 0, 0, 1], at)), b"words").await.unwrap(), b"words");
    let to = SocketAddr::from(([127, 0, 0, 1], there));
    let hosts = [UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap()];
    for (socket, word) in hosts.iter().zip([b"one", b"two"]) {
        asked(socket, to, word, |answer| answer == word).await;
    }
    // As large as a packet may be: cut into sixty pieces, and put together.
    let large: Vec<u8> = (0..65_507_u32).map(|at| (at % 253) as u8).collect();
    asked(&hosts[0], to, &large, |answer| answer == large).await;
}

/// A sink behind a forward of UDP, and a program that has a way to it.
async fn forwarded() -> (Ends, UdpSocket, std::net::UdpSocket) {
    let sink = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    // It loses none of its own.
    socket2::SockRef::from(&sink).set_recv_buffer_size(4 << 20).unwrap();
    let at = free_port().await;
    let forward = format!("udp:{at}={}", sink.local_addr().unwrap()).parse::<Forward>().unwrap();
    let ends = Ends::with_ports(false, None, (vec![forward], Vec::new())).await;
    let program = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    program.connect(("127.0.0.1", at)).unwrap();
    let until = tokio::time::Instant::now() + LIMIT;
    while timeout(Duration::from_millis(300), sink.recv(&mut [0; 64])).await.is_err() {
        assert!(tokio::time::Instant::now() < until, "nothing arrives");
        program.send(b"first").unwrap();
    }
    while timeout(Duration::from_millis(300), sink.recv(&mut [0; 64])).await.is_ok() {}
    (ends, sink, program)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_small_packets_arrives_as_a_whole() {
    // More than datagrams may wait.
    const PACKETS: u32 = 500;
    let (_ends, sink, program) = forwarded().await;
    for number in 0..PACKETS {
        program.send(&number.to_be_bytes()).unwrap();
    }
    let (mut came, mut buffer) = (Vec::new(), [0; 64]);
    while let Ok(Ok(length)) = timeout(Duration::from_secs(1), sink.recv(&mut buffer)).await {
        came.push(u32::from_be_bytes(buffer[..length].try_into().unwrap()));
    }
    // Over two paths that are alike nobody puts packets in order again, and a busy machine mixes them.
    came.sort_unstable();
    assert!(came.iter().copied().eq(0..PACKETS), "{} of {PACKETS} came", came.len());
}

/// How many of small packets arrive, where a program sends so many in each of 500 milliseconds.
async fn arrived(sink: &UdpSocket, program: &std::net::UdpSocket, each: u32) -> u32 {
    let program = program.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let begun = std::time::Instant::now();
        for at in 0..500 {
            std::thread::sleep((Duration::from_millis(1) * at).saturating_sub(begun.elapsed()));
            (0..each).for_each(|_| drop(program.send(&[7; 64])));
        }
    });
    let mut count = 0;
    while let Ok(Ok(_)) = timeout(Duration::from_secs(1), sink.recv(&mut [0; 64])).await {
        count += 1;
    }
    sending.join().unwrap();
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn no_fewer_packets_arrive_where_more_are_sent_than_can_be_carried() {
    let (_ends, sink, program) = forwarded().await;
    let mut counts = Vec::new();
    for each in [10, 40, 160] {
        counts.push(arrived(&sink, &program, each).await);
    }
    // The program itself takes a part of the two cores that carry them.
    let most = *counts.iter().max().unwrap();
    assert!(counts[2] * 2 >= most, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_of_the_far_end_leads_to_this_machine_where_the_line_allows_it() {
    let echo = late_echo().await;
    let port = free_port().await;
    let reverses: Vec<Reverse> =
        [port, 80].iter().map(|port| format!("tcp:127.0.0.1:{port}={echo}").parse().unwrap()).collect();
    let mut ends = Ends::with_ports(false, None, (Vec::new(), reverses)).await;
    let refused = |notice: &NearNotice| matches!(notice, NearNotice::Forward(words) if words.contains("listen=80"));
    ends.near_told(refused).await;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let until = tokio::time::Instant::now() + LIMIT;
    while exchange(address, b"words").await.ok().as_deref() != Some(b"words") {
        assert!(tokio::time::Instant::now() < until, "the port is not open");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_that_come_to_a_port_of_the_far_end_reach_this_machine_and_answers_go_back() {
    let (echo, port) = (echo().await, free_port().await);
    let reverses = vec![format!("udp:127.0.0.1:{port}={echo}").parse::<Reverse>().unwrap()];
    let ends = Ends::with_ports(false, None, (Vec::new(), reverses)).await;
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let hosts = [UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap()];
    for (socket, word) in hosts.iter().zip([b"one", b"two"]) {
        asked(socket, to, word, |answer| answer == word).await;
    }
    // Both ends tell of it at their control sockets.
    for end in ["far", "near"] {
        let snapshot = fairpath_proxy::snapshot(&ends.folder.path().join(end)).await.unwrap();
        let reverse: Vec<_> =
            snapshot.connections.iter().filter(|one| one.kind == fairpath_proxy::Kind::Reverse).collect();
        assert_eq!(reverse.len(), 2, "{end}: {snapshot:?}");
        assert!(reverse.iter().all(|one| one.up_bytes >= 3 && one.down_bytes >= 3), "{end}: {snapshot:?}");
        assert!(snapshot.peers[0].paths.iter().any(|path| path.is_open), "{end}: {snapshot:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_that_wait_when_the_near_end_is_ended_still_go_out() {
    const PACKETS: u64 = 30;
    let (sink, program) =
        (UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let at = free_port().await;
    let forward = format!("udp:{at}={}", sink.local_addr().unwrap()).parse::<Forward>().unwrap();
    // All of them take a tenth of a second.
    let mut ends = slow_ends(forward).await;
    let (to, mut buffer) = (SocketAddr::from(([127, 0, 0, 1], at)), vec![0; 2_000]);
    let until = tokio::time::Instant::now() + LIMIT;
    while timeout(Duration::from_millis(300), sink.recv_from(&mut buffer)).await.is_err() {
        assert!(tokio::time::Instant::now() < until, "nothing arrives");
        program.send_to(b"first", to).await.unwrap();
    }
    while timeout(Duration::from_millis(300), sink.recv_from(&mut buffer)).await.is_ok() {}
    let near = ends.folder.path().join("near");
    let before = fairpath_proxy::snapshot(&near).await.unwrap().up_bytes;
    for _ in 0..PACKETS {
        program.send_to(&[7; 1_000], to).await.unwrap();
    }
    while fairpath_proxy::snapshot(&near).await.unwrap().up_bytes < before + PACKETS * 1_000 {
        assert!(tokio::time::Instant::now() < until, "not all are taken");
    }
    ends.stop_near().await;
    let mut came = 0;
    while timeout(Duration::from_millis(500), sink.recv_from(&mut buffer)).await.is_ok() {
        came += 1;
    }
    // On a busy machine one may wait for so long that CoDel drops it.
    assert!(came + 2 >= PACKETS, "{came} of {PACKETS}");
}

/// How many packets with each value of the congestion field come to a socket, until none comes for a second.
#[cfg(target_os = "linux")]
fn congestion_fields(socket: &std::net::UdpSocket) -> [usize; 4] {
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
    use std::os::fd::AsRawFd as _;

    let mut counts = [0; 4];
    loop {
        let (mut buffer, mut space) = ([0; 2_000], nix::cmsg_space!(i32));
        let mut slices = [std::io::IoSliceMut::new(&mut buffer)];
        let read = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::empty());
        let Ok(read) = read else { return counts };
        let field = read.cmsgs().unwrap().find_map(|message| match message {
            ControlMessageOwned::Ipv4Tos(bits) => Some(usize::from(bits & 0b11)),
            _ => None,
        });
        counts[field.unwrap_or(0)] += 1;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn packets_that_may_be_marked_are_marked_where_others_are_dropped() {
    const PACKETS: u32 = 1_000;
    let sink = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    sink.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    nix::sys::socket::setsockopt(&sink, nix::sys::socket::sockopt::IpRecvTos, &true).unwrap();
    let at = free_port().await;
    let forward = format!("udp:{at}={}", sink.local_addr().unwrap()).parse::<Forward>().unwrap();
    let ends = slow_ends(forward).await;
    let to = SocketAddr::from(([127, 0, 0, 1], at));
    // ECT(0), and no ECN: more of them than the links carry.
    for field in [0b10, 0b00] {
        let program = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket2::SockRef::from(&program).set_tos_v4(field).unwrap();
        let hearing = sink.try_clone().unwrap();
        let heard = tokio::task::spawn_blocking(move || congestion_fields(&hearing));
        // A busy machine catches up with what it is late with.
        let begun = tokio::time::Instant::now();
        for at in 0..PACKETS {
            tokio::time::sleep_until(begun + Duration::from_millis(2) * at).await;
            program.send_to(&[7; 1_000], to).await.unwrap();
        }
        let counts = heard.await.unwrap();
        let [without, ect1, ect0, ce] = counts;
        match field {
            0 => assert!(without > 100 && ect1 + ect0 + ce == 0, "{counts:?}"),
            _ => assert!(ect0 > 100 && ce > 3 && without + ect1 == 0, "{counts:?}"),
        }
    }
    drop(ends);
}

/// Both ends with a forward, over two links that carry 150 packets of 1,000 bytes a second each.
async fn slow_ends(forward: Forward) -> Ends {
    let folder = tempfile::tempdir().unwrap();
    let far = FarEnd::start(folder.path().join("far"), 0).await;
    let terms = PathTerms::new().cap(Bitrate::from_bps(1_200_000));
    let terms: Vec<_> = via().into_iter().map(|of| (of, terms)).collect();
    let config = |state| NearConfig { forwards: vec![forward], terms, ..near_config(state) };
    Ends::join(folder, far, &[], config).await
}

/// A connection of a program that associates, and the address for its packets.
async fn associated(ends: &Ends) -> (TcpStream, SocketAddr) {
    let mut tcp = ends.program().await;
    tcp.write_all(b"\x05\x01\0\x05\x03\0\x01\0\0\0\0\0\0").await.unwrap();
    let mut reply = [0; 12];
    timeout(LIMIT, tcp.read_exact(&mut reply)).await.expect("in time").unwrap();
    assert_eq!(reply[..6], [5, 0, 5, 0, 0, 1]);
    (tcp, SocketAddr::from(([127, 0, 0, 1], u16::from_be_bytes([reply[10], reply[11]]))))
}

/// Each round is a new association, whose number the other end must not take for that of the last one.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_sent_before_it_left_still_goes_out() {
    const ROUNDS: usize = 20;
    const PACKETS: usize = 20;
    let ends = Ends::start().await;
    let host = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = host.local_addr().unwrap().port().to_be_bytes();
    let packet = [&b"\0\0\0\x01\x7f\0\0\x01"[..], &port, &[7; 900]].concat();
    let mut came = Vec::new();
    for _ in 0..ROUNDS {
        let (tcp, to) = associated(&ends).await;
        let program = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        for _ in 0..PACKETS {
            program.send_to(&packet, to).await.unwrap();
        }
        drop(tcp);
        let mut buffer = [0; 1_000];
        let mut count = 0;
        while count < PACKETS
            && let Ok(Ok((900, _))) = timeout(Duration::from_millis(500), host.recv_from(&mut buffer)).await
        {
            count += 1;
        }
        came.push(count);
    }
    assert_eq!(came, [PACKETS; ROUNDS]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_associates_and_has_one_address_whomever_it_talks_to() {
    let ends = Ends::start().await;
    let (tcp, to) = associated(&ends).await;
    let program = UdpSocket::bind("127.0.0.1:0").await.unwrap();

    let hosts = [UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap()];
    let mut seen = Vec::new();
    for host in &hosts {
        let port = host.local_addr().unwrap().port().to_be_bytes();
        let packet = [&b"\0\0\0\x03\x09localhost"[..], &port, b"hello"].concat();
        let mut buffer = [0; 64];
        let (length, from) = loop {
            program.send_to(&packet, to).await.unwrap();
            if let Ok(came) = timeout(Duration::from_millis(300), host.recv_from(&mut buffer)).await {
                break came.unwrap();
            }
        };
        assert_eq!(&buffer[..length], b"hello");
        seen.push(from);
    }
    assert_eq!(seen[0], seen[1], "one address for both");
    // A host that was never sent to reaches it there, too.
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    stranger.send_to(b"from outside", ("127.0.0.1", seen[0].port())).await.unwrap();
    let mut buffer = [0; 64];
    let (length, _) = timeout(LIMIT, program.recv_from(&mut buffer)).await.expect("in time").unwrap();
    let port = stranger.local_addr().unwrap().port().to_be_bytes();
    assert_eq!(buffer[..length], [&b"\0\0\0\x01\x7f\0\0\x01"[..], &port, b"from outside"].concat());
    // It ends with the program's connection: the address is nobody's any more.
    drop(tcp);
    let until = tokio::time::Instant::now() + LIMIT;
    while UdpSocket::bind(("0.0.0.0", seen[0].port())).await.is_err() {
        assert!(tokio::time::Instant::now() < until, "the socket is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Programs take another port for each question; all associations would soon be taken by answered ones.
#[tokio::test(flavor = "multi_thread")]
async fn more_names_are_asked_for_than_there_may_be_associations() {
    let Ok(resolver) = UdpSocket::bind("127.0.0.77:53").await else {
        eprintln!("skipped: this user may not bind port 53");
        return;
    };
    tokio::spawn(async move {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = resolver.recv_from(&mut buffer).await {
            let _ = resolver.send_to(&buffer[..length], from).await;
        }
    });
    let at = free_port().await;
    let forwards = vec![format!("udp:{at}=127.0.0.77:53").parse().unwrap()];
    let _ends = Ends::with_ports(false, None, (forwards, Vec::new())).await;
    let to = SocketAddr::from(([127, 0, 0, 1], at));
    for number in 0..300_u32 {
        let program = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let question = number.to_be_bytes();
        asked(&program, to, &question, |answer| answer == question).await;
    }
}

/// A resolver or another host at which nothing answers, and the forward or the port that leads there.
async fn silent(port: u16) -> Option<(UdpSocket, SocketAddr)> {
    let Ok(socket) = UdpSocket::bind(("127.0.0.78", port)).await else {
        eprintln!("skipped: this user may not bind port {port}");
        return None;
    };
    let address = socket.local_addr().unwrap();
    Some((socket, address))
}

/// As many sockets send a packet as there may be associations, and more: of one machine, or each of one of its own.
async fn flood(to: SocketAddr, are_many: bool) -> Vec<UdpSocket> {
    let mut all = Vec::new();
    for number in 0..400_u16 {
        let [high, low] = if are_many { (number + 256).to_be_bytes() } else { [0, 1] };
        let socket = UdpSocket::bind(SocketAddr::from(([127, 0, high, low], 0))).await.unwrap();
        socket.send_to(b"question", to).await.unwrap();
        // Each is taken before the next comes.
        tokio::time::sleep(Duration::from_millis(1)).await;
        all.push(socket);
    }
    all
}

/// Without an answer a question keeps its place for ten seconds, and a host outside for thirty.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_answered_keeps_nobody_else_from_a_place() {
    let Some((_resolver, dns)) = silent(53).await else { return };
    let (echo, names, other) = (echo().await, free_port().await, free_port().await);
    let forwards = vec![format!("udp:{names}={dns}").parse().unwrap(), format!("udp:{other}={echo}").parse().unwrap()];
    let _ends = Ends::with_ports(false, None, (forwards, Vec::new())).await;
    let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let program = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    asked(&program, at(other), b"before", |answer| answer == b"before").await;
    let _flood = flood(at(names), false).await;
    // One that was answered keeps its place, and a new one gets one.
    asked(&program, at(other), b"same", |answer| answer == b"same").await;
    let next = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    timeout(SOON, asked(&next, at(other), b"new", |answer| answer == b"new")).await.expect("a place at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_many_questions_takes_no_place_of_another_that_waits() {
    let Some((resolver, dns)) = silent(53).await else { return };
    let names = free_port().await;
    let forwards = vec![format!("udp:{names}={dns}").parse().unwrap()];
    let _ends = Ends::with_ports(false, None, (forwards, Vec::new())).await;
    let at = SocketAddr::from(([127, 0, 0, 1], names));
    let waiting = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    let mut buffer = [0; 64];
    let until = tokio::time::Instant::now() + LIMIT;
    let from = loop {
        assert!(tokio::time::Instant::now() < until, "the question does not arrive");
        waiting.send_to(b"mine", at).await.unwrap();
        let came = timeout(Duration::from_millis(300), resolver.recv_from(&mut buffer)).await;
        if let Ok(Ok((_, from))) = came {
            break from;
        }
    };
    let _flood = flood(at, false).await;
    resolver.send_to(b"answer", from).await.unwrap();
    let (length, _) = timeout(SOON, waiting.recv_from(&mut buffer)).await.expect("its answer").unwrap();
    assert_eq!(&buffer[..length], b"answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_who_are_not_answered_keep_nobody_from_a_port_of_the_far_end() {
    let Some((_host, address)) = silent(5_078).await else { return };
    let (echo, quiet, other) = (echo().await, free_port().await, free_port().await);
    let reverses = vec![
        format!("udp:127.0.0.1:{quiet}={address}").parse::<Reverse>().unwrap(),
        format!("udp:127.0.0.1:{other}={echo}").parse().unwrap(),
    ];
    let _ends = Ends::with_ports(false, None, (Vec::new(), reverses)).await;
    let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let host = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    asked(&host, at(other), b"before", |answer| answer == b"before").await;
    let _flood = flood(at(quiet), true).await;
    let next = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    timeout(SOON, asked(&next, at(other), b"new", |answer| answer == b"new")).await.expect("a place at once");
}

//! The emulator with real sockets and a real clock.
//!
//! Machines that run tests are busy, and a busy machine can only make things later and slower. So
//! a delay has a strict lower bound and a rate a strict upper bound; the other side is generous.

use std::error::Error;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use fairpath_core::{Bitrate, ByteCount, PathId};
use fairpath_emu::{Emulator, Filter, Impairments, LinkConfig, LossConfig, QueueConfig, Reorder};

type TestResult = Result<(), Box<dyn Error>>;

/// IPv4 and UDP headers.
const HEADER_BYTES: u64 = 28;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(ms(2_000)))?;
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20);
    Ok(socket)
}

/// The datagrams that are already there or come within `patience`.
fn receive_all(socket: &UdpSocket, patience: Duration) -> io::Result<Vec<Vec<u8>>> {
    socket.set_read_timeout(Some(patience))?;
    let mut buffer = [0; 65_536];
    let mut received = Vec::new();
    loop {
        match socket.recv(&mut buffer) {
            Ok(length) => received.push(buffer[..length].to_vec()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(received)
}

/// One path with these two links.
fn one_path(
    forward: &LinkConfig,
    backward: &LinkConfig,
    server: SocketAddr,
) -> Result<(Emulator, PathId), Box<dyn Error>> {
    let mut builder = Emulator::builder(1);
    let forward = builder.link("forward", forward)?;
    let backward = builder.link("backward", backward)?;
    let path = builder.path(&[forward], &[backward], server)?;
    Ok((builder.start()?, path))
}

#[test]
fn a_datagram_takes_the_delay_of_each_way_there_and_back() -> TestResult {
    let (client, server) = (socket()?, socket()?);
    let config = |delay| LinkConfig::pure_delay(ms(delay));
    let (emulator, path) = one_path(&config(40), &config(60), server.local_addr()?)?;
    let mut buffer = [0; 64];

    let started = Instant::now();
    client.send_to(b"ping", emulator.relay(path))?;
    let (length, relay) = server.recv_from(&mut buffer)?;
    let there = started.elapsed();
    assert_eq!(&buffer[..length], b"ping");
    server.send_to(b"pong", relay)?;
    let (length, from) = client.recv_from(&mut buffer)?;
    let and_back = started.elapsed();

    assert_eq!((&buffer[..length], from), (&b"pong"[..], emulator.relay(path)));
    assert!((ms(40)..ms(240)).contains(&there), "{there:?}");
    assert!((ms(100)..ms(400)).contains(&and_back), "{and_back:?}");
    let timing = emulator.stats().timing;
    assert_eq!(timing.count, 2);
    assert!(timing.max < ms(200), "{timing}");
    Ok(())
}

#[test]
fn links_duplicate_corrupt_and_reorder_real_datagrams() -> TestResult {
    let (client, server) = (socket()?, socket()?);
    let impairments = Impairments { duplicate: 1.0, corrupt: 1.0, ..Impairments::default() };
    let harmful = LinkConfig::pure_delay(ms(1)).impairments(impairments);
    let (emulator, path) = one_path(&harmful, &harmful, server.local_addr()?)?;
    for number in 0..20_u8 {
        client.send_to(&[number; 100], emulator.relay(path))?;
    }
    client.send_to(b"", emulator.relay(path))?;
    let mut received = receive_all(&server, ms(500))?;
    assert_eq!(received.len(), 42);
    received.retain(|datagram| !datagram.is_empty());
    assert_eq!(received.len(), 40, "what is empty cannot be harmed");
    for datagram in &received {
        // All bytes but one are the number still.
        let number = if datagram[0] == datagram[1] { datagram[0] } else { datagram[2] };
        let wrong: u32 = datagram.iter().map(|byte| (byte ^ number).count_ones()).sum();
        assert_eq!((datagram.len(), wrong), (100, 1));
    }
    let stats = emulator.stats();
    let forward = stats.link("forward").ok_or("no such link")?;
    assert_eq!((forward.offered.packets, forward.duplicated.packets, forward.corrupted.packets), (21, 21, 42));
    assert_eq!(stats.path(path).forward.released.packets, 42);

    let reorder = Some(Reorder { share: 0.3, by: ms(100) });
    let late = LinkConfig::pure_delay(ms(1)).impairments(Impairments { reorder, ..Impairments::default() });
    let (emulator, path) = one_path(&late, &late, server.local_addr()?)?;
    for number in 0..50_u8 {
        client.send_to(&[number], emulator.relay(path))?;
    }
    let mut received = receive_all(&server, ms(500))?;
    assert!(!received.is_sorted());
    received.sort();
    assert_eq!(received, (0..50_u8).map(|number| vec![number]).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_filter_drops_what_it_says_until_it_is_taken_away() -> TestResult {
    let (client, server) = (socket()?, socket()?);
    let mut builder = Emulator::builder(1);
    let link = builder.link("forward", &LinkConfig::pure_delay(ms(1)))?;
    let path = builder.path(&[link], &[link], server.local_addr()?)?;
    let emulator = builder.start()?;
    let send = |size: usize| client.send_to(&vec![0; size], emulator.relay(path));
    // 1,172 bytes of payload and 28 of headers still pass.
    emulator.set_filter(link, Filter::DropLarger(ByteCount::new(1_200)));
    send(1_172)?;
    send(1_173)?;
    assert_eq!(receive_all(&server, ms(500))?.len(), 1);
    emulator.set_filter(link, Filter::Pass);
    send(1_173)?;
    assert_eq!(receive_all(&server, ms(500))?.len(), 1);
    assert_eq!(emulator.stats().links[0].stats.filtered.packets, 1);
    Ok(())
}

/// Offers every relay more than any link here carries, for `time`, and gives what each relay's
/// datagrams brought to the server, in bytes on the links. The first byte names the relay.
fn flood(
    relays: &[SocketAddr],
    server: &UdpSocket,
    rate: Bitrate,
    time: Duration,
) -> Result<Vec<ByteCount>, Box<dyn Error>> {
    const PAYLOAD_BYTES: usize = 1_000;
    let client = socket()?;
    let started = Instant::now();
    let per_datagram = ByteCount::new(PAYLOAD_BYTES as u64 + HEADER_BYTES) / rate;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0;
            while started.elapsed() < time {
                while per_datagram * sent <= started.elapsed() {
                    for (number, relay) in relays.iter().enumerate() {
                        let _ = client.send_to(&[number as u8; PAYLOAD_BYTES], relay);
                    }
                    sent += 1;
                }
                thread::sleep(ms(1));
            }
        });
        server.set_read_timeout(Some(ms(20)))?;
        let mut bytes = vec![ByteCount::ZERO; relays.len()];
        let mut buffer = [0; 2048];
        while started.elapsed() < time {
            if let Ok(length) = server.recv(&mut buffer) {
                bytes[usize::from(buffer[0])] += ByteCount::new(length as u64 + HEADER_BYTES);
            }
        }
        Ok(bytes)
    })
}

fn mbps(bytes: ByteCount, time: Duration) -> f64 {
    bytes.per(time).map_or(0.0, Bitrate::as_mbps_f64)
}

#[test]
fn a_link_holds_its_rate_whatever_is_offered() -> TestResult {
    let server = socket()?;
    let config = LinkConfig::new(Bitrate::from_mbps(20)).queue(QueueConfig::sojourn(ms(50)));
    let (emulator, path) = one_path(&config, &config, server.local_addr()?)?;
    let time = ms(1_500);
    let bytes = flood(&[emulator.relay(path)], &server, Bitrate::from_mbps(30), time)?;
    let rate = mbps(bytes[0], time);
    // Never more than the rate, but for one datagram. A machine that stops the sender for longer
    // than the queue lasts makes it less.
    assert!(rate <= 20.1, "{rate} Mbit/s");
    assert!(rate >= 15.0, "{rate} Mbit/s");
    let link = emulator.stats().links[0].stats;
    assert!(link.is_conserved());
    assert!(link.overflowed.packets > 0);
    // 50 ms are the wait of the last that fits, up to the one being transmitted.
    assert!(link.queueing_delay_max <= ms(51), "{:?}", link.queueing_delay_max);
    Ok(())
}

#[test]
fn paths_that_share_a_link_share_its_rate() -> TestResult {
    let server = socket()?;
    let mut builder = Emulator::builder(1);
    let fast = LinkConfig::new(Bitrate::from_mbps(100));
    let mut access = |name| builder.link(name, &fast);
    let (first, second, back) = (access("first")?, access("second")?, access("back")?);
    let shared = builder.link("shared", &LinkConfig::new(Bitrate::from_mbps(20)).queue(QueueConfig::packets(20)))?;
    builder.path(&[first, shared], &[back], server.local_addr()?)?;
    builder.path(&[second, shared], &[back], server.local_addr()?)?;
    let emulator = builder.start()?;
    let time = ms(1_200);
    let bytes = flood(emulator.relays(), &server, Bitrate::from_mbps(20), time)?;
    let rates: Vec<f64> = bytes.iter().map(|bytes| mbps(*bytes, time)).collect();
    let sum: f64 = rates.iter().sum();
    assert!(sum <= 20.1, "{rates:?}");
    assert!(sum >= 14.0, "{rates:?}");
    // Both offer the same, datagram by datagram. How a full queue divides is a matter of chance,
    // but neither gets nothing.
    assert!(rates.iter().all(|rate| *rate > 2.0), "{rates:?}");
    Ok(())
}

#[test]
fn nothing_crosses_a_link_or_path_that_is_down_and_all_does_when_it_is_up_again() -> TestResult {
    let (client, server) = (socket()?, socket()?);
    let mut builder = Emulator::builder(1);
    let link = builder.link("there", &LinkConfig::pure_delay(ms(1)))?;
    let back = builder.link("back", &LinkConfig::pure_delay(ms(1)))?;
    let path = builder.path(&[link], &[back], server.local_addr()?)?;
    let emulator = builder.start()?;
    let try_to_cross = |content: &[u8]| -> Result<Vec<Vec<u8>>, io::Error> {
        client.send_to(content, emulator.relay(path))?;
        receive_all(&server, ms(100))
    };
    let nothing: [&[u8]; 0] = [];

    emulator.set_link_up(link, false);
    assert_eq!(try_to_cross(b"a")?, nothing);
    emulator.set_link_up(link, true);
    assert_eq!(try_to_cross(b"b")?, [b"b"]);
    emulator.set_path_up(path, false);
    assert_eq!(try_to_cross(b"c")?, nothing);
    emulator.set_path_up(path, true);
    assert_eq!(try_to_cross(b"d")?, [b"d"]);

    let stats = emulator.stats();
    assert_eq!(stats.link("there").map(|link| link.down.packets), Some(1));
    let forward = stats.path(path).forward;
    assert_eq!((forward.received.packets, forward.down.packets, forward.released.packets), (4, 1, 2));
    Ok(())
}

#[test]
fn every_datagram_keeps_its_content_its_boundaries_and_its_order() -> TestResult {
    let (client, server) = (socket()?, socket()?);
    let config = LinkConfig::new(Bitrate::from_mbps(500)).delay(ms(5)).queue(QueueConfig::unlimited());
    let (emulator, path) = one_path(&config, &config, server.local_addr()?)?;
    // Sizes alternate so that trains form, break off and end with a shorter datagram.
    let sizes = [1_200, 1_200, 1_200, 300, 1, 0, 1_472, 1_200, 1_400, 1_400];
    let datagram = |number: usize| vec![number as u8; sizes[number % sizes.len()]];
    let sent: Vec<Vec<u8>> = (0..200).map(datagram).collect();
    for datagram in &sent {
        client.send_to(datagram, emulator.relay(path))?;
    }
    assert_eq!(receive_all(&server, ms(300))?, sent);
    Ok(())
}

#[test]
fn what_no_link_carries_is_dropped_and_counted() -> TestResult {
    let server = socket()?;
    let link = LinkConfig::new(Bitrate::from_mbps(100));
    let (emulator, path) = one_path(&link, &link, server.local_addr()?)?;
    let client = socket()?;
    for length in [1_472, 1_473, 9_000] {
        client.send_to(&vec![1; length], emulator.relay(path))?;
    }
    let lengths: Vec<usize> = receive_all(&server, ms(100))?.iter().map(Vec::len).collect();
    assert_eq!(lengths, [1_472]);
    let stats = emulator.stats().path(path).forward;
    assert_eq!((stats.received.packets, stats.too_large.packets, stats.too_large.bytes.get()), (3, 2, 10_473));
    Ok(())
}

#[test]
fn the_server_sees_each_client_at_an_address_of_its_own() -> TestResult {
    let (first, second, server) = (socket()?, socket()?, socket()?);
    let config = LinkConfig::pure_delay(ms(1));
    let (emulator, path) = one_path(&config, &config, server.local_addr()?)?;
    let mut buffer = [0; 64];
    let mut addresses = Vec::new();
    for client in [&first, &second, &first] {
        client.send_to(b"hello", emulator.relay(path))?;
        addresses.push(server.recv_from(&mut buffer)?.1);
    }
    assert_eq!(addresses[0], addresses[2]);
    assert_ne!(addresses[0], addresses[1]);
    server.send_to(b"two", addresses[1])?;
    assert_eq!(second.recv(&mut buffer)?, 3);
    assert_eq!(emulator.stats().path(path).clients, 2);
    Ok(())
}

#[test]
fn a_client_too_many_takes_the_place_of_the_one_silent_longest() -> TestResult {
    let server = socket()?;
    let mut builder = Emulator::builder(1);
    builder.clients_max(2);
    let path = builder.path(&[], &[], server.local_addr()?)?;
    let emulator = builder.start()?;
    let clients: Vec<UdpSocket> = (0..3).map(|_| socket()).collect::<Result<_, _>>()?;
    let mut buffer = [0; 64];
    let mut addresses = Vec::new();
    for client in &clients {
        client.send_to(b"hello", emulator.relay(path))?;
        addresses.push(server.recv_from(&mut buffer)?.1);
    }
    assert_eq!(emulator.stats().path(path).clients, 2);
    for address in &addresses {
        // Nobody listens any more where the first client was.
        let _ = server.send_to(b"answer", address);
    }
    assert_eq!(clients[1].recv(&mut buffer)?, 6);
    assert_eq!(clients[2].recv(&mut buffer)?, 6);
    assert!(receive_all(&clients[0], ms(50))?.is_empty());
    Ok(())
}

#[test]
fn ecn_bits_cross() -> TestResult {
    let (client, server) = (socket()?, socket()?);
    let config = LinkConfig::pure_delay(ms(1));
    let (emulator, path) = one_path(&config, &config, server.local_addr()?)?;
    let state = noq_udp::UdpSocketState::new((&server).into())?;
    server.set_nonblocking(false)?;
    for ect in [0b10, 0b01, 0b00] {
        socket2::SockRef::from(&client).set_tos_v4(ect)?;
        client.send_to(b"marked", emulator.relay(path))?;
        let mut buffer = [0; 64];
        let mut meta = [noq_udp::RecvMeta::default()];
        state.recv((&server).into(), &mut [io::IoSliceMut::new(&mut buffer)], &mut meta)?;
        assert_eq!(meta[0].ecn.map_or(0, |ecn| ecn as u32), ect);
    }
    Ok(())
}

#[test]
fn losses_are_those_of_the_model_and_the_seed() -> TestResult {
    let (client, server) = (socket()?, socket()?);
    let config = LinkConfig::pure_delay(ms(1)).loss(LossConfig::Random { probability: 0.5 });
    let survivors = || -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
        let (emulator, path) = one_path(&config, &config, server.local_addr()?)?;
        for number in 0..100 {
            client.send_to(&[number], emulator.relay(path))?;
        }
        Ok(receive_all(&server, ms(100))?)
    };
    let first = survivors()?;
    assert!((25..=75).contains(&first.len()), "{}", first.len());
    assert_eq!(survivors()?, first);
    Ok(())
}

#[test]
fn a_description_that_cannot_be_meant_is_refused() {
    let mut builder = Emulator::builder(1);
    let config = LinkConfig::new(Bitrate::from_mbps(1));
    assert!(builder.link("a", &config).is_ok());
    let error = builder.link("a", &config).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "there are two links of the name \"a\"");
    let lossy = config.loss(LossConfig::Random { probability: 1.5 });
    let error = builder.link("b", &lossy).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "link \"b\": loss.probability is 1.5, which is no probability: it must be from 0 to 1"
    );
}

//! `fairpath stream` as programs use it, over loopback: two addresses of it are two paths.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Listening, Scratch, error_of, fairpath, run, text};
use fairpath_core::{Bitrate, PathId};
use fairpath_emu::{Emulator, LinkConfig};
use fairpath_transfer::Ticket;
use serde_json::Value;

/// How long something may take that takes a moment.
const PATIENCE: Duration = Duration::from_secs(60);

/// A port that nobody uses.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn udp(port: u16) -> String {
    format!("udp://127.0.0.1:{port}")
}

/// A program's socket, which gives up waiting after a moment.
fn program(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket
}

/// `fairpath stream send`, killed when it is dropped.
struct Sending(Child);

impl Sending {
    fn start(ticket: &str, options: &[&str]) -> Self {
        let args = [&["stream", "send", ticket, "--via", "127.0.1.1", "--via", "127.0.2.1"], options].concat();
        Self(fairpath(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Waits for the end; returns the exit code, standard output and standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut output, mut errors) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.0.wait().unwrap().code(), output, errors)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// Sends packets until the other program has had one: then both ends are connected.
fn meet(from: &UdpSocket, to: u16, at: &UdpSocket) {
    let begun = Instant::now();
    let mut buffer = [0; 100];
    while begun.elapsed() < PATIENCE {
        from.send_to(b"hello", ("127.0.0.1", to)).unwrap();
        if at.recv_from(&mut buffer).is_ok_and(|(length, _)| &buffer[..length] == b"hello") {
            return;
        }
    }
    panic!("nothing came within {PATIENCE:?}");
}

/// The next so many packets that come, while others are sent: the system holds few for a program that does not read.
fn reading(at: &UdpSocket, count: usize) -> JoinHandle<Vec<Vec<u8>>> {
    let at = at.try_clone().unwrap();
    std::thread::spawn(move || {
        let (begun, mut buffer, mut all) = (Instant::now(), vec![0; 70_000], Vec::new());
        while all.len() < count && begun.elapsed() < PATIENCE {
            if let Ok((length, _)) = at.recv_from(&mut buffer)
                && &buffer[..length] != b"hello"
            {
                all.push(buffer[..length].to_vec());
            }
        }
        all
    })
}

/// A packet that no other is.
fn packet(number: usize) -> Vec<u8> {
    let length = [1_316, 4, 188, 1_400, 1_472, 9_000][number % 6];
    let mut packet: Vec<u8> = (0..length).map(|at| (number * 31 + at * 7) as u8).collect();
    packet[..4].copy_from_slice(&(number as u32).to_be_bytes());
    packet
}

#[test]
fn places_are_named_as_players_and_encoders_name_them() {
    let (encoder_port, player_port) = (free_port(), free_port());
    let player = program(player_port);
    let to = format!("udp://localhost:{player_port}?pkt_size=1316");
    let receiver = Listening::start(&["stream", "recv", "--listen", "localhost:0", "--to", &to]);
    let sending = Sending::start(&receiver.ticket, &["--from", &format!("udp://@:{encoder_port}?fifo_size=1000")]);
    meet(&UdpSocket::bind("127.0.0.1:0").unwrap(), encoder_port, &player);
    interrupt(&sending.0);
    assert_eq!(sending.end().0, Some(0));
}

#[test]
fn packets_of_a_group_go_on_to_a_group() {
    let (from_port, to_port) = (free_port(), free_port());
    let [from, to] = [("239.77.0.1", from_port), ("239.77.0.2", to_port)];
    let place = |(group, port)| format!("udp://{group}:{port}?localaddr=127.0.0.1");
    let player = UdpSocket::bind(("0.0.0.0", to_port)).unwrap();
    player.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let loopback = Ipv4Addr::LOCALHOST;
    if player.join_multicast_v4(&to.0.parse().unwrap(), &loopback).is_err() {
        eprintln!("skipped: this machine has no groups on loopback");
        return;
    }
    let receiver = Listening::start(&["stream", "recv", "--listen", "127.0.0.1:0", "--to", &place(to)]);
    let sending = Sending::start(&receiver.ticket, &["--from", &place(from)]);
    let encoder = socket2::SockRef::from(&UdpSocket::bind("127.0.0.1:0").unwrap()).try_clone().unwrap();
    encoder.set_multicast_if_v4(&loopback).unwrap();
    let group: std::net::SocketAddr = format!("{}:{}", from.0, from.1).parse().unwrap();
    let (begun, mut buffer) = (Instant::now(), [0; 100]);
    while !player.recv_from(&mut buffer).is_ok_and(|(length, _)| &buffer[..length] == b"hello") {
        assert!(begun.elapsed() < PATIENCE, "nothing came");
        encoder.send_to(b"hello", &group.into()).unwrap();
    }
    interrupt(&sending.0);
    assert_eq!(sending.end().0, Some(0));
}

#[test]
fn packets_arrive_unchanged_and_in_order_answers_go_back_and_both_ends_end_when_asked() {
    let (encoder_port, player_port) = (free_port(), free_port());
    let player = program(player_port);
    let receiver =
        Listening::start(&["stream", "recv", "--listen", "127.0.0.1:0", "--to", &udp(player_port), "--json"]);
    // A machine that has much to do must not make packets late.
    let sender = Sending::start(&receiver.ticket, &["--from", &udp(encoder_port), "--deadline", "5s", "--json"]);
    let encoder = program(0);
    meet(&encoder, encoder_port, &player);
    let sent: Vec<Vec<u8>> = (0..300).map(packet).collect();
    let came = reading(&player, sent.len());
    for packet in &sent {
        encoder.send_to(packet, ("127.0.0.1", encoder_port)).unwrap();
        std::thread::sleep(Duration::from_millis(3));
    }
    let came = came.join().unwrap();
    assert_eq!(came.len(), sent.len());
    assert!(came == sent, "in order, and as they were");
    // The player answers whoever sent to it.
    let mut buffer = [0; 10];
    encoder.send_to(b"hello", ("127.0.0.1", encoder_port)).unwrap();
    player.set_read_timeout(Some(PATIENCE)).unwrap();
    let (_, from) = player.recv_from(&mut buffer).unwrap();
    player.send_to(b"an answer", from).unwrap();
    assert_eq!(reading(&encoder, 1).join().unwrap(), [b"an answer".to_vec()]);
    std::thread::sleep(Duration::from_millis(1_200));

    interrupt(&sender.0);
    let (code, output, errors) = sender.end();
    assert_eq!(code, Some(0), "{errors}");
    let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().expect("a line a second");
    assert!(last["received_there"]["packets"].as_u64().unwrap() >= 301, "{last}");
    assert_eq!((&last["received_there"]["lost"], &last["deadline_ms"]), (&0.into(), &5_000.into()), "{last}");
    assert!(last["budget_bps"].as_u64().unwrap() > 100_000, "{last}");
    let paths = last["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{last}");
    // Paths share by their rates. On loopback those are some hundred Mbit/s, or a few on a busy machine, so that one path
    // may have less than a hundredth.
    let datagram = 1_200;
    assert!(paths.iter().all(|path| path["sent_bytes"].as_u64().unwrap() > datagram), "both paths carry: {last}");
    let (code, rest, errors) = receiver.end();
    assert_eq!(code, Some(0), "the sender has ended, and so has this: {errors}");
    assert!(rest.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{rest}");
}

#[test]
fn several_flows_are_kept_apart() {
    let ports = [free_port(), free_port()];
    let players = [program(0), program(0)];
    let to = players.each_ref().map(|player| udp(player.local_addr().unwrap().port()));
    let receiver =
        Listening::start(&["stream", "recv", "--listen", "127.0.0.1:0", "--to", &to[0], "--to", &to[1], "--quiet"]);
    let options = ["--from", &udp(ports[0]), "--from", &udp(ports[1]), "--deadline", "5s", "--quiet"];
    let sender = Sending::start(&receiver.ticket, &options);
    let encoder = program(0);
    (0..2).for_each(|flow| meet(&encoder, ports[flow], &players[flow]));
    let came = players.each_ref().map(|player| reading(player, 50));
    for number in 0..100 {
        encoder.send_to(&packet(number), ("127.0.0.1", ports[number % 2])).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    for (flow, came) in came.into_iter().enumerate() {
        let came = came.join().unwrap();
        let sent: Vec<Vec<u8>> = (0..100).filter(|number| number % 2 == flow).map(packet).collect();
        assert!(came == sent, "{} of {} in flow {flow}", came.len(), sent.len());
    }
    // The receiver ends, and the sender with it.
    interrupt(&receiver.child);
    let (code, rest, _) = receiver.end();
    assert_eq!((code, rest.as_str()), (Some(0), ""));
    let (code, output, errors) = sender.end();
    assert_eq!((code, output.as_str()), (Some(0), ""), "{errors}");
}

#[test]
fn an_encoder_is_told_its_budget_and_may_change_the_deadline() {
    let scratch = Scratch::new();
    let (socket, port, player) = (scratch.0.join("budget"), free_port(), program(0));
    let to = udp(player.local_addr().unwrap().port());
    let receiver = Listening::start(&["stream", "recv", "--listen", "127.0.0.1:0", "--to", &to, "--json"]);
    let sender = Sending::start(&receiver.ticket, &["--from", &udp(port), "--budget", text(&socket)]);
    meet(&program(0), port, &player);
    let stream = UnixStream::connect(&socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    (&stream).write_all(b"not a wish\n{\"deadline_ms\":700}\n").unwrap();
    let mut lines = BufReader::new(&stream).lines();
    let told = |line: String| serde_json::from_str::<BTreeMap<String, Value>>(&line).unwrap();
    let wished = lines.by_ref().map_while(Result::ok).map(told).find(|told| told["deadline_ms"] == 700);
    let told = wished.expect("the deadline is told with the budget");
    assert!(told["budget_bps"].as_u64().unwrap() > 0, "{told:?}");
    interrupt(&sender.0);
    let (code, _, errors) = sender.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains(" s  lo:127.0.1.1"), "a line a second, and one in the end: {errors}");
    assert!(!socket.exists(), "the socket is gone with the program");
    let (_, output, _) = receiver.end();
    let last: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    assert_eq!(last["deadline_ms"], 700, "what goes back has the new deadline too: {last}");
}

/// The numbers of an end by name and labels, as Prometheus has them.
fn metrics(port: u16) -> BTreeMap<String, f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/openmetrics-text"), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    let numbers = body.lines().filter(|line| !line.starts_with('#'));
    numbers
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.into(), value.parse().unwrap()))
        .collect()
}

/// The numbers, once they are as they should be.
fn metrics_when(port: u16, what: &str, is_so: impl Fn(&BTreeMap<String, f64>) -> bool) -> BTreeMap<String, f64> {
    let begun = Instant::now();
    loop {
        let numbers = metrics(port);
        if is_so(&numbers) {
            return numbers;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {numbers:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn prometheus_sees_both_ends_and_counts_that_go_on_with_the_next_sender() {
    const RECEIVED: &str = "fairpath_stream_received_pieces_total{end=\"here\",outcome=\"in_time\"}";
    const CONNECTED: &str = "fairpath_stream_connected";
    let (port, player) = (free_port(), program(0));
    let [ours, theirs] = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
    let (shown_here, shown_there) = (format!("127.0.0.1:{ours}"), format!("127.0.0.1:{theirs}"));
    let to = udp(player.local_addr().unwrap().port());
    let listen = ["stream", "recv", "--listen", "127.0.0.1:0", "--to", &to, "--keep", "--quiet"];
    let receiver = Listening::start(&[&listen[..], &["--metrics", &shown_there]].concat());
    assert_eq!(metrics(theirs)[CONNECTED], 0.0, "nobody is there yet");
    let options = ["--from", &udp(port), "--deadline", "5s", "--quiet", "--metrics", &shown_here];
    let sender = Sending::start(&receiver.ticket, &options);
    let encoder = program(0);
    meet(&encoder, port, &player);
    for number in 0..50 {
        encoder.send_to(&packet(number), ("127.0.0.1", port)).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let all_came = |numbers: &BTreeMap<String, f64>| numbers.get(RECEIVED).is_some_and(|count| *count >= 51.0);
    let there = metrics_when(theirs, "51 packets", all_came);
    let of_sender = RECEIVED.replace("here", "there");
    let here = metrics_when(ours, "the report", |numbers| numbers.get(&of_sender).is_some_and(|count| *count >= 51.0));
    assert_eq!((here[CONNECTED], there[CONNECTED], here["fairpath_stream_deadline_seconds"]), (1.0, 1.0, 5.0));
    assert!(here["fairpath_stream_budget_bits_per_second"] > 100_000.0, "{here:#?}");
    assert!(here["fairpath_stream_packets_total{direction=\"sent\"}"] >= 51.0, "{here:#?}");
    for address in ["127.0.1.1", "127.0.2.1"] {
        for of_path in ["path_sent_bytes_total", "path_allowed_bits_per_second", "path_delay_seconds"] {
            let name = format!("fairpath_stream_{of_path}{{path=\"lo:{address}\"}}");
            assert!(here.get(&name).is_some_and(|number| *number > 0.0), "{name}: {here:#?}");
        }
        let loss = format!("fairpath_stream_path_loss_ratio{{path=\"lo:{address}\"}}");
        assert!((0.0..=1.0).contains(&here[&loss]), "{here:#?}");
    }

    let (words, taken) =
        (["stream", "send", &receiver.ticket, "--from", &udp(free_port())], ["--metrics", &shown_there]);
    let refused = run(&[&words[..], &taken].concat());
    assert!(error_of(&refused).contains("another program uses this port; give another to --metrics"), "{refused:?}");
    let refused = run(&[&words[..], &["--metrics", "0.0.0.0:9464"]].concat());
    assert!(error_of(&refused).contains("such as 127.0.0.1:9464"), "{refused:?}");
    assert_eq!(refused.status.code(), Some(2));

    interrupt(&sender.0);
    assert_eq!(sender.end().0, Some(0));
    let alone = metrics_when(theirs, "nobody is there", |numbers| numbers[CONNECTED] == 0.0);
    assert!(alone[RECEIVED] >= 51.0 && !alone.keys().any(|name| name.contains("path_rate")), "{alone:#?}");
    let next = Sending::start(&receiver.ticket, &options[..5]);
    meet(&encoder, port, &player);
    let more = metrics_when(theirs, "one more", |numbers| numbers[RECEIVED] > alone[RECEIVED]);
    assert!(more[RECEIVED] < 2.0 * alone[RECEIVED], "what was counted before is not counted again: {more:#?}");
    drop(next);
}

#[test]
fn a_connection_that_is_lost_in_mid_stream_is_made_again_and_the_flow_goes_on() {
    const CONNECTED: &str = "fairpath_stream_connected";
    let (port, player) = (free_port(), program(0));
    let metrics_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let to = udp(player.local_addr().unwrap().port());
    let receiver = Listening::start(&["stream", "recv", "--listen", "127.0.0.1:0", "--to", &to]);
    let mut ticket: Ticket = receiver.ticket.parse().unwrap();
    let mut builder = Emulator::builder(1);
    for at in 0..2 {
        let link = LinkConfig::new(Bitrate::from_mbps(10)).delay(Duration::from_millis(10));
        let way = ["there", "back"].map(|way| builder.link(&format!("{way} {at}"), &link).unwrap());
        builder.path(&way[..1], &way[1..], ticket.addresses[0]).unwrap();
    }
    let links = builder.start().unwrap();
    ticket.addresses = links.relays().to_vec();
    let shown = format!("127.0.0.1:{metrics_port}");
    let options = ["--from", &udp(port), "--deadline", "2s", "--metrics", &shown];
    let sender = Sending::start(&ticket.to_string(), &options);
    let encoder = program(0);
    meet(&encoder, port, &player);
    let set_up = |up| (0..2).for_each(|path| links.set_path_up(PathId::new(path), up));
    // The encoder goes on, as one does that hears nothing of it.
    set_up(false);
    metrics_when(metrics_port, "the connection is lost", |numbers| {
        encoder.send_to(b"in vain", ("127.0.0.1", port)).unwrap();
        numbers[CONNECTED] == 0.0
    });
    for _ in 0..100 {
        encoder.send_to(b"in vain", ("127.0.0.1", port)).unwrap();
    }
    while player.recv_from(&mut [0; 100]).is_ok() {}
    set_up(true);
    let begun = Instant::now();
    let mut buffer = [0; 100];
    let first = loop {
        assert!(begun.elapsed() < PATIENCE, "nothing comes any more");
        encoder.send_to(b"hello", ("127.0.0.1", port)).unwrap();
        if let Ok((length, _)) = player.recv_from(&mut buffer) {
            break &buffer[..length];
        }
    };
    assert_eq!(first, b"hello", "what the encoder said when nobody could send it is late by now");
    assert_eq!(metrics_when(metrics_port, "it is there", |numbers| numbers[CONNECTED] == 1.0)[CONNECTED], 1.0);
    // The player answers over the new connection, too.
    player.set_read_timeout(Some(PATIENCE)).unwrap();
    encoder.send_to(b"hello", ("127.0.0.1", port)).unwrap();
    let (_, from) = player.recv_from(&mut [0; 100]).unwrap();
    player.send_to(b"an answer", from).unwrap();
    assert_eq!(reading(&encoder, 1).join().unwrap(), [b"an answer".to_vec()]);
    interrupt(&sender.0);
    let (code, _, errors) = sender.end();
    assert!(code == Some(0) && errors.contains("connection lost") && errors.contains("trying again"), "{errors}");
}

#[test]
fn what_cannot_be_meant_is_a_usage_error_and_what_does_not_fit_is_told() {
    for (args, words) in [
        (&["stream", "recv", "--to", "127.0.0.1:6000"][..], "such as udp://127.0.0.1:5000"),
        (&["stream", "recv"], "--to <UDP>"),
        (&["stream", "send", "--from", "udp://127.0.0.1:5000", "--deadline", "300", "fp1x"], "such as 300ms"),
        (&["stream", "send", "--from", "udp://127.0.0.1:5000", "--deadline", "1min", "fp1x"], "such as 300ms"),
        (&["stream", "send", "--from", "udp://127.0.0.1:5000", "fp1x"], "ticket"),
    ] {
        let refused = run(args);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(words), "{args:?}: {said}");
    }
    let player = program(0);
    let to = udp(player.local_addr().unwrap().port());
    let receiver = Listening::start(&["stream", "recv", "--listen", "127.0.0.1:0", "--to", &to]);
    let (one, other) = (udp(free_port()), udp(free_port()));
    let two = run(&["stream", "send", &receiver.ticket, "--from", &one, "--from", &other]);
    assert!(error_of(&two).contains("the sender has 2 flows, and the receiver 1"), "{two:?}");
    assert_eq!(two.status.code(), Some(1));
    let wrong = run(&["stream", "send", &receiver.ticket_with_wrong_secret(), "--from", &one]);
    assert!(error_of(&wrong).contains("the secret in the ticket is wrong"), "{wrong:?}");
    let taken = run(&["stream", "send", &receiver.ticket, "--from", &to]);
    assert!(error_of(&taken).contains("another program uses this port"), "{taken:?}");
    assert_eq!(taken.status.code(), Some(1));
    let files = run(&["send", "Cargo.toml", &receiver.ticket]);
    assert!(error_of(&files).contains("this ticket is not from `fairpath recv`"), "{files:?}");
}

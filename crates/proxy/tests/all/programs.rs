//! Programs: their protocols, and the ends of their connections.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::ends::{Ends, LIMIT, late_echo, server, socks_request};

/// Everything that comes until the end.
async fn rest(tcp: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    timeout(LIMIT, tcp.read_to_end(&mut all)).await.expect("in time").unwrap();
    all
}

/// All that is said in answer to `words`, as text.
async fn answer(ends: &Ends, words: &str) -> String {
    let mut tcp = ends.program().await;
    tcp.write_all(words.as_bytes()).await.unwrap();
    String::from_utf8(rest(&mut tcp).await).unwrap()
}

fn without_linger(tcp: &TcpStream) {
    socket2::SockRef::from(tcp).set_linger(Some(Duration::ZERO)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_pass_in_both_directions_and_each_ends_by_itself() {
    let (ends, echo) = (Ends::start().await, late_echo().await);
    let (mut tcp, code) = ends.socks(&echo).await;
    assert_eq!(code, 0);
    let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    tcp.write_all(&sent).await.unwrap();
    tcp.shutdown().await.unwrap();
    assert!(rest(&mut tcp).await == sent, "an answer after the end of what was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn greetings_may_come_in_pieces_or_all_at_once_with_the_first_data() {
    let (ends, echo) = (Ends::start().await, late_echo().await);
    let words = [&[5, 2, 0, 2][..], &socks_request(&echo), b"first words"].concat();
    for piece in [1, words.len()] {
        let mut tcp = ends.program().await;
        tcp.set_nodelay(true).unwrap();
        for part in words.chunks(piece) {
            tcp.write_all(part).await.unwrap();
            tokio::task::yield_now().await;
        }
        tcp.shutdown().await.unwrap();
        let answered = rest(&mut tcp).await;
        assert!(answered.starts_with(&[5, 0, 5, 0, 0, 1]) && answered.ends_with(b"first words"), "{answered:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_connects_and_forwards_and_has_pages_of_its_own_on_the_same_port() {
    let ends = Ends::start().await;
    let web = server(|mut tcp| async move {
        let mut head = vec![0; 4096];
        let length = tcp.read(&mut head).await.unwrap_or(0);
        let body = String::from_utf8_lossy(&head[..length]).replace("\r\n", "|");
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        let _ = tcp.write_all(answer.as_bytes()).await;
    })
    .await;
    let forwarded =
        answer(&ends, &format!("GET http://{web}/a HTTP/1.1\r\nProxy-Connection: keep-alive\r\n\r\n")).await;
    assert!(forwarded.ends_with(&format!("GET /a HTTP/1.1|Host: {web}|Connection: close||")), "{forwarded}");

    let connected = answer(&ends, &format!("CONNECT {web} HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n")).await;
    assert!(connected.starts_with("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK"), "{connected}");
    assert!(connected.ends_with("GET /b HTTP/1.1||"), "{connected}");

    let page = answer(&ends, "GET / HTTP/1.1\r\n\r\n").await;
    assert!(page.contains("It works") && page.contains("127.0.0.1"), "{page}");
    let settings = answer(&ends, "GET /proxy.pac HTTP/1.1\r\n\r\n").await;
    assert!(settings.contains(&format!("SOCKS5 {}", ends.port)), "{settings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_refuses_or_is_forbidden_is_told_in_the_codes_of_each_protocol() {
    let ends = Ends::start().await;
    // Nobody listens at port 1.
    assert_eq!(ends.socks("127.0.0.1:1").await.1, 5);
    assert_eq!(ends.socks("no-such-host.invalid:80").await.1, 4);
    let refused = answer(&ends, "CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 502 ") && refused.contains("127.0.0.1:1 refuses connections"), "{refused}");
    for target in ["10.0.0.1:80", "169.254.169.254:80", "[::ffff:10.0.0.1]:80", "[::1]:22"] {
        let forbidden = answer(&ends, &format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        assert!(forbidden.starts_with("HTTP/1.1 403 ") && forbidden.contains("may not reach"), "{forbidden}");
    }
    assert_eq!(ends.socks("10.0.0.1:80").await.1, 2);
    let bad = answer(&ends, "GET https://example.com/ HTTP/1.1\r\n\r\n").await;
    assert!(bad.starts_with("HTTP/1.1 400 ") && bad.contains("CONNECT"), "{bad}");
    // BIND is not served, and a kind of address that is none.
    let mut tcp = ends.program().await;
    tcp.write_all(b"\x05\x01\0\x05\x02\0\x01\x7f\0\0\x01\0\x50").await.unwrap();
    assert_eq!(rest(&mut tcp).await[3], 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_is_told_as_a_reset_in_both_directions() {
    let ends = Ends::start().await;
    let resetting = server(|mut tcp| async move {
        let _ = tcp.read_u8().await;
        without_linger(&tcp);
    })
    .await;
    let (mut tcp, _) = ends.socks(&resetting).await;
    tcp.write_all(b"x").await.unwrap();
    let read = timeout(LIMIT, tcp.read_u8()).await.expect("in time");
    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);

    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let watching = server(move |mut tcp| {
        let told = told.clone();
        async move {
            let _ = tcp.read_u8().await;
            let _ = told.send(tcp.read_u8().await.map_err(|error| error.kind()));
        }
    })
    .await;
    let (mut tcp, _) = ends.socks(&watching).await;
    tcp.write_all(b"x").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    without_linger(&tcp);
    drop(tcp);
    let heard = timeout(LIMIT, heard.recv()).await.expect("in time");
    assert_eq!(heard, Some(Err(ErrorKind::ConnectionReset)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_wanted_where_one_is_set() {
    let (ends, echo) = (Ends::with(false, Some("me:secret")).await, late_echo().await);
    let mut tcp = ends.program().await;
    tcp.write_all(&[5, 1, 0]).await.unwrap();
    assert_eq!(rest(&mut tcp).await, [5, 0xff]);
    for (password, is_right) in [("secret", true), ("guess", false)] {
        let shown = [&[5, 2, 0, 2, 1, 2][..], b"me", &[password.len() as u8], password.as_bytes()].concat();
        let mut tcp = ends.program().await;
        tcp.write_all(&[&shown[..], &socks_request(&echo), b"x"].concat()).await.unwrap();
        let _ = tcp.shutdown().await;
        let mut said = Vec::new();
        // A program that talks on after a wrong password is reset.
        let _ = timeout(LIMIT, tcp.read_to_end(&mut said)).await.expect("in time");
        assert_eq!(said.ends_with(b"x"), is_right, "{said:?}");
        assert_eq!(said[..4], [5, 2, 1, u8::from(!is_right)]);
    }
    let without = answer(&ends, &format!("CONNECT {echo} HTTP/1.1\r\n\r\n")).await;
    assert!(without.starts_with("HTTP/1.1 407 ") && without.contains("Proxy-Authenticate: Basic"), "{without}");
    // "me:secret" in base64.
    let mut tcp = ends.program().await;
    let with = format!("CONNECT {echo} HTTP/1.1\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\nx");
    tcp.write_all(with.as_bytes()).await.unwrap();
    tcp.shutdown().await.unwrap();
    assert!(rest(&mut tcp).await.ends_with(b"x"));
    let settings = answer(&ends, "GET /proxy.pac HTTP/1.1\r\n\r\n").await;
    assert!(settings.starts_with("HTTP/1.1 200 "), "{settings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fast_open_answers_at_once_and_resets_where_it_fails() {
    let (ends, echo) = (Ends::with(true, None).await, late_echo().await);
    let (mut tcp, code) = ends.socks(&echo).await;
    assert_eq!(code, 0);
    tcp.write_all(b"words").await.unwrap();
    tcp.shutdown().await.unwrap();
    assert_eq!(rest(&mut tcp).await, b"words");
    let (mut tcp, code) = ends.socks("127.0.0.1:1").await;
    assert_eq!(code, 0, "before it was known");
    let read = timeout(LIMIT, tcp.read_u8()).await.expect("in time");
    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_say_nothing_or_nonsense_hinder_no_other() {
    let (ends, echo) = (Ends::start().await, late_echo().await);
    let mut crowd = Vec::new();
    for _ in 0..200 {
        let mut tcp = ends.program().await;
        tcp.write_all(b"G").await.unwrap();
        crowd.push(tcp);
    }
    // Nonsense ends its own connection, and so does a head that never ends.
    let mut tcp = ends.program().await;
    tcp.write_all(b"\x16\x03\x01 hello").await.unwrap();
    assert!(matches!(timeout(LIMIT, tcp.read_u8()).await, Ok(Err(_))));
    let mut tcp = ends.program().await;
    let endless = format!("GET http://a/ HTTP/1.1\r\nX: {}", "x".repeat(40_000));
    let _ = tcp.write_all(endless.as_bytes()).await;
    let mut said = [0; 12];
    timeout(LIMIT, tcp.read_exact(&mut said)).await.expect("in time").unwrap();
    assert_eq!(&said, b"HTTP/1.1 400");
    let (mut tcp, code) = ends.socks(&echo).await;
    assert_eq!(code, 0);
    tcp.shutdown().await.unwrap();
    assert_eq!(rest(&mut tcp).await, b"");
}

//! Ends that make connections over sockets they share, their own or given ones, under names of their own in TLS, and to
//! certificates that somebody vouches for.

use std::net::UdpSocket;
use std::time::Duration;

use fairpath_quic::{
    Application, Authority, ConnectConfig, Connection, DATAGRAM_MAX, DialConfig, Dialer, Error, GivenSockets, Identity,
    ListenConfig, Listener, Machine, PathControl, Verify,
};

fn listener(address: &str) -> Listener {
    Listener::bind(ListenConfig { via: vec![address.into()], ..ListenConfig::new().unwrap() }).unwrap()
}

fn towards(listener: &Listener) -> ConnectConfig {
    ConnectConfig::new(listener.addresses(), listener.fingerprint())
}

/// Sends a message and takes the answer.
async fn exchange(from: &Connection, to: &Connection) {
    from.send_message("there".into()).await.unwrap();
    assert_eq!(&to.recv_message().await.unwrap()[..], b"there");
    to.send_message("and back".into()).await.unwrap();
    assert_eq!(&from.recv_message().await.unwrap()[..], b"and back");
}

#[tokio::test]
async fn an_end_that_listens_connects_over_the_same_sockets() {
    let [here, there] = ["127.0.41.1", "127.0.42.1"].map(listener);
    let config = ConnectConfig { via: vec!["127.0.41.1".into()], ..towards(&there) };
    let (out, into) = tokio::join!(here.dialer().connect(config), there.accept());
    let (out, into) = (out.unwrap(), into.unwrap());
    exchange(&out, &into).await;
    assert_eq!(into.paths()[0].remote, here.addresses()[0], "the port is that which is listened on");
    // Connections come the other way at the same time, and those that were made are not among those to accept.
    let (out, into) = tokio::join!(there.dialer().connect(towards(&here)), here.accept());
    exchange(&out.unwrap(), &into.unwrap()).await;
    assert!(tokio::time::timeout(Duration::from_millis(50), here.accept()).await.is_err());
}

#[tokio::test]
async fn sockets_that_the_program_gives_carry_a_path_each() {
    let listener = listener("127.0.43.1");
    let given = ["127.0.44.1:0", "127.0.45.1:0"].map(|address| UdpSocket::bind(address).unwrap());
    let mut ports = given.each_ref().map(|socket| socket.local_addr().unwrap().port());
    let dialer = Dialer::new(DialConfig {
        control: PathControl::new(),
        application: Application::Fairpath,
        datagram_max: DATAGRAM_MAX,
        allowances: Vec::new(),
        machine: Machine::Sockets(GivenSockets::new(given).unwrap()),
    });
    let dialer = dialer.unwrap();
    for _ in 0..2 {
        let (out, into) = tokio::join!(dialer.connect(towards(&listener)), listener.accept());
        let (out, into) = (out.unwrap(), into.unwrap());
        exchange(&out, &into).await;
        assert!(out.paths_open(2, Duration::from_secs(5)).await && into.paths_open(2, Duration::from_secs(5)).await);
        let mut seen: Vec<u16> = into.paths().iter().map(|path| path.remote.port()).collect();
        seen.sort_unstable();
        ports.sort_unstable();
        assert_eq!(seen, ports);
    }
}

#[tokio::test]
async fn ends_that_speak_under_another_name_do_not_meet() {
    let application = Application::Named(b"chat/3");
    let via = vec!["127.0.46.1".to_owned()];
    let listener = Listener::bind(ListenConfig { application, via, ..ListenConfig::new().unwrap() }).unwrap();
    let error = fairpath_quic::connect(towards(&listener)).await.unwrap_err();
    assert!(error.to_string().contains("'fairpath/1' was offered"), "{error}");
    let config = ConnectConfig { application, ..towards(&listener) };
    let (out, into) = tokio::join!(fairpath_quic::connect(config), listener.accept());
    exchange(&out.unwrap(), &into.unwrap()).await;
}

fn pem(label: &str, der: &[u8]) -> Vec<u8> {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", data_encoding::BASE64.encode(der)).into_bytes()
}

#[tokio::test]
async fn a_certificate_is_accepted_where_an_authority_vouches_for_it_and_its_name() {
    let [root_key, key] = [(); 2].map(|()| rcgen::KeyPair::generate().unwrap());
    let mut root = rcgen::CertificateParams::new([]).unwrap();
    root.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root_pem = pem("CERTIFICATE", root.clone().self_signed(&root_key).unwrap().der());
    let issuer = rcgen::Issuer::new(root, root_key);
    let own = rcgen::CertificateParams::new(["host.example".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let identity = Identity::from_pem(&pem("CERTIFICATE", own.der()), &pem("PRIVATE KEY", &key.serialize_der()));
    let (identity, via) = (identity.unwrap(), vec!["127.0.47.1".to_owned()]);
    let listener = Listener::bind(ListenConfig { identity, via, ..ListenConfig::new().unwrap() }).unwrap();
    let config = |name| {
        let verify = Verify::Authority(Authority::from_pem(&root_pem, name).unwrap());
        ConnectConfig { verify, ..towards(&listener) }
    };
    let error = fairpath_quic::connect(config("other.example")).await.unwrap_err();
    assert!(matches!(error, Error::Handshake { .. }), "{error}");
    let (out, into) = tokio::join!(fairpath_quic::connect(config("host.example")), listener.accept());
    exchange(&out.unwrap(), &into.unwrap()).await;
}

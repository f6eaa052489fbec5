//! A far end and a near end that has joined it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fairpath_proxy::{
    DeviceName, Far, FarConfig, FarNotice, FarState, Forward, Near, NearConfig, NearNotice, Password, Reverse, join,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Time for whatever a test waits for, on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// The near end's addresses: two, as if they were two links.
pub(crate) fn via() -> Vec<String> {
    vec!["127.0.0.1".to_owned(), "127.0.0.2".to_owned()]
}

/// A far end that runs.
pub(crate) struct FarEnd {
    pub(crate) state: PathBuf,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) notices: mpsc::UnboundedReceiver<FarNotice>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl FarEnd {
    pub(crate) async fn start(state: PathBuf, port: u16) -> Self {
        Self::listening(state, SocketAddr::from(([127, 0, 0, 1], port)), Vec::new()).await
    }

    /// One that listens on this address, and on further ones.
    pub(crate) async fn listening(state: PathBuf, listen: SocketAddr, also_listen: Vec<SocketAddr>) -> Self {
        let config = FarConfig { state: state.clone(), listen, also_listen, advertise: Vec::new(), via: Vec::new() };
        // The port of one that has ended is free a moment later.
        let mut bound = Far::bind(config.clone());
        let begun = Instant::now();
        while bound.is_err() && begun.elapsed() < LIMIT {
            tokio::time::sleep(Duration::from_millis(20)).await;
            bound = Far::bind(config.clone());
        }
        let mut far = bound.unwrap();
        let (to, notices) = mpsc::unbounded_channel();
        let addresses = far.addresses();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            tokio::select! {
                () = far.run(|notice| drop(to.send(notice))) => {}
                _ = stopped => far.close().await,
            }
        });
        Self { state, addresses, notices, stop: Some(stop), task }
    }

    /// Ends it as the program does that is asked to end.
    pub(crate) async fn stop(&mut self) {
        drop(self.stop.take());
        (&mut self.task).await.unwrap();
    }

    /// Waits for a notice.
    pub(crate) async fn told(&mut self, is_it: impl Fn(&FarNotice) -> bool) -> FarNotice {
        let told = async {
            loop {
                let notice = self.notices.recv().await.unwrap();
                if is_it(&notice) {
                    return notice;
                }
            }
        };
        tokio::time::timeout(LIMIT, told).await.expect("the far end tells it")
    }

    /// Lets all devices reach this machine.
    pub(crate) fn allow_loopback(&self) {
        let file = self.state.join("authorized");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, text.replace("reach=public", "reach=public,127.0.0.0/8 listen=1024-65535")).unwrap();
    }

    pub(crate) fn state(&self) -> FarState {
        FarState::open(&self.state).unwrap()
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Both ends, the near one with its port.
pub(crate) struct Ends {
    pub(crate) far: FarEnd,
    pub(crate) port: SocketAddr,
    pub(crate) near_notices: mpsc::UnboundedReceiver<NearNotice>,
    near: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) folder: tempfile::TempDir,
}

impl Ends {
    pub(crate) async fn start() -> Self {
        Self::with(false, None).await
    }

    pub(crate) async fn with(fast_open: bool, password: Option<&str>) -> Self {
        Self::with_ports(fast_open, password, (Vec::new(), Vec::new())).await
    }

    pub(crate) async fn with_ports(
        fast_open: bool,
        password: Option<&str>,
        ports: (Vec<Forward>, Vec<Reverse>),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let far = FarEnd::start(folder.path().join("far"), 0).await;
        Self::join(folder, far, &[], |state| NearConfig {
            fast_open,
            password: password.map(|text| Password::parse(text).unwrap()),
            forwards: ports.0,
            reverses: ports.1,
            ..near_config(state)
        })
        .await
    }

    /// A near end that joins this far end, which it is told to find at `addresses`, or where it is.
    pub(crate) async fn join(
        folder: tempfile::TempDir,
        far: FarEnd,
        addresses: &[SocketAddr],
        config: impl FnOnce(PathBuf) -> NearConfig,
    ) -> Self {
        let ticket = far.state().invite(&name("van"), addresses).unwrap();
        let config = config(folder.path().join("near"));
        assert_eq!(join(&config.state, &ticket, &config.via).await.unwrap(), "van");
        far.allow_loopback();
        let (port, near, stop, near_notices) = start_near(config).await;
        Self { far, port, near_notices, near, stop: Some(stop), folder }
    }

    /// A connection to the port.
    pub(crate) async fn program(&self) -> TcpStream {
        TcpStream::connect(self.port).await.unwrap()
    }

    /// A connection to a target through the port by SOCKS5, and the code of the answer.
    pub(crate) async fn socks(&self, target: &str) -> (TcpStream, u8) {
        let mut tcp = self.program().await;
        tcp.write_all(&[5, 1, 0]).await.unwrap();
        let mut answer = [0; 2];
        tcp.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, [5, 0]);
        tcp.write_all(&socks_request(target)).await.unwrap();
        let mut reply = [0; 10];
        tcp.read_exact(&mut reply).await.unwrap();
        (tcp, reply[1])
    }

    /// Ends the near end as the program does that is asked to end.
    pub(crate) async fn stop_near(&mut self) {
        drop(self.stop.take());
        (&mut self.near).await.unwrap();
    }

    /// Waits for a notice of the near end.
    pub(crate) async fn near_told(&mut self, is_it: impl Fn(&NearNotice) -> bool) {
        let told = async { while !is_it(&self.near_notices.recv().await.unwrap()) {} };
        tokio::time::timeout(LIMIT, told).await.expect("the near end tells it");
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.near.abort();
    }
}

/// A near end without forwards, on two links.
pub(crate) fn near_config(state: PathBuf) -> NearConfig {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let (forwards, reverses) = (Vec::new(), Vec::new());
    NearConfig {
        state,
        listen,
        via: via(),
        terms: Vec::new(),
        allowances: Vec::new(),
        fast_open: false,
        password: None,
        forwards,
        reverses,
        transparent: None,
    }
}

/// The notices of a near end.
type Notices = mpsc::UnboundedReceiver<NearNotice>;

async fn start_near(config: NearConfig) -> (SocketAddr, JoinHandle<()>, oneshot::Sender<()>, Notices) {
    let mut near = Near::bind(config).await.unwrap();
    let port = near.address().unwrap();
    let (to, notices) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        tokio::select! {
            () = near.run(|notice| drop(to.send(notice))) => {}
            _ = stopped => near.close().await,
        }
    });
    (port, task, stop, notices)
}

pub(crate) fn name(text: &str) -> DeviceName {
    text.parse().unwrap()
}

/// A request of SOCKS5 for a host by its name, as curl sends it with `socks5h`.
pub(crate) fn socks_request(target: &str) -> Vec<u8> {
    let (host, port) = target.rsplit_once(':').unwrap();
    let port: u16 = port.parse().unwrap();
    [&[5, 1, 0, 3, host.len() as u8], host.as_bytes(), &port.to_be_bytes()].concat()
}

/// A server that answers each connection by `serve`; its address.
pub(crate) async fn server<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(serve(tcp));
        }
    });
    address.to_string()
}

/// A server that sends back all that comes, once that has ended.
pub(crate) async fn late_echo() -> String {
    server(|mut tcp| async move {
        let mut all = Vec::new();
        if tcp.read_to_end(&mut all).await.is_ok() {
            let _ = tcp.write_all(&all).await;
        }
    })
    .await
}

//! The commands of the guide's pages on `proxy`, run as they stand there, between two network namespaces whose links have the
//! names that the pages have. The far machine has a web server of the test's, to which curl and git go.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::bond::listen;
use crate::kernel::inside;
use crate::network::{End, Family, NAMED, Network, run};
use crate::proxy_pages::PROXY_PAGES;
use crate::transfer::{Process, Scratch};
use crate::{network, say};

const PATIENCE: Duration = Duration::from_secs(40);

/// A public address, which the far machine has.
const PUBLIC: Ipv4Addr = Ipv4Addr::new(11, 0, 0, 1);

/// The beginnings of the commands that this test does not run, each with the reason.
const NOT_RUN: [(&str, &str); 6] = [
    ("useradd ", "it would change this machine's users"),
    ("systemctl ", "a namespace has no systemd of its own"),
    ("sudo -u fairpath ", "the user is not there"),
    ("mkdir -p ~/.config/systemd", "it is the place of a unit"),
    ("cp dist/", "units are of no use without systemd"),
    ("podman ", "an image is made of a release, by a daemon that is not here"),
];

/// A reader with both ends at hand.
struct Reader<'a> {
    network: &'a Network,
    folder: PathBuf,
    invitation: String,
    serve: Option<Process>,
    proxy: Option<Process>,
}

impl Reader<'_> {
    fn types(&mut self, line: &str) {
        let words: Vec<String> = line.split_whitespace().skip(1).map(|word| self.meant(word)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[0] {
            "serve" => {
                self.serve = None;
                let mut serve = self.start(End::Receiver, &words);
                serve.until("it serves", PATIENCE, |serve| serve.said().contains("serving at"));
                self.serve = Some(serve);
            }
            "invite" => self.invitation = printed(line, self.run(End::Receiver, &words, "")),
            "join" => {
                printed(line, self.run(End::Sender, &words, &self.invitation));
                // The web server is the far machine's own, and the pages tell of ports there.
                let authorized = self.state(End::Receiver).join("fairpath/serve/authorized");
                let line = fs::read_to_string(&authorized).unwrap();
                let reach = format!("reach=public,{PUBLIC} listen=8080,53000");
                fs::write(&authorized, line.replace("reach=public", &reach)).unwrap();
            }
            "proxy" if words.contains(&"--undo") => drop(printed(line, self.run(End::Sender, &words, ""))),
            "proxy" => {
                if let Some(mut before) = self.proxy.take() {
                    before.signal("TERM");
                    assert!(before.end(PATIENCE).success(), "{line}: the one before: {}", before.said());
                }
                let mut proxy = self.start(End::Sender, &words);
                proxy.until("it is connected", PATIENCE, |proxy| proxy.said().contains("connected to the far end as"));
                assert!(!proxy.said().contains("error"), "{line}: {}", proxy.said());
                self.proxy = Some(proxy);
            }
            "top" => self.looks(line, &words),
            _ => drop(printed(line, self.run(End::Sender, &words, ""))),
        }
    }

    /// The word of a page, with what a reader puts in its place.
    fn meant(&self, word: &str) -> String {
        match word {
            "FILE" => self.folder.join("password").display().to_string(),
            "/var/lib/fairpath-proxy" => self.state(End::Sender).join("fairpath/proxy").display().to_string(),
            _ => word.replace("https://example.com", &format!("http://{PUBLIC}")),
        }
    }

    fn state(&self, end: End) -> PathBuf {
        self.folder.join(self.network.name(end))
    }

    fn command(&self, end: End, program: &str) -> Command {
        let mut command = self.network.command(end, program);
        command.current_dir(&self.folder).env("XDG_STATE_HOME", self.state(end));
        command
    }

    fn start(&self, end: End, words: &[&str]) -> Process {
        Process::start_with_state(self.network.name(end), words, &self.folder, &self.state(end))
    }

    /// A command that ends by itself, with this on its standard input.
    fn run(&self, end: End, words: &[&str], input: &str) -> Output {
        let mut command = self.command(end, env!("CARGO_BIN_EXE_fairpath"));
        let piped = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        // One that reads nothing may have ended.
        _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// A command that shows something on a terminal, until it is interrupted.
    fn looks(&self, line: &str, words: &[&str]) {
        if Command::new("script").arg("--version").output().is_err() {
            return say(&format!("{line}: not run, there is no `script` here"));
        }
        let typed = format!("timeout -s INT 4 {} {}", env!("CARGO_BIN_EXE_fairpath"), words.join(" "));
        let mut command = self.command(End::Sender, "script");
        let shown = command.args(["-q", "-c", &typed, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains(NAMED[0].name), "{line}: {shown}");
    }
}

/// The output of a command that must succeed.
fn printed(line: &str, output: Output) -> String {
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_commands_of_the_guide_on_proxies_run() {
    if ["curl", "git", "nft"].iter().any(|tool| Command::new(tool).arg("--version").output().is_err()) {
        return say("the guide's commands on proxies: skipped, they need curl, git and nft");
    }
    let Some((_place, network)) = network(Family::V4, NAMED) else { return };
    let scratch = Scratch::with_tree(0);
    let folder = scratch.path();
    for end in [End::Sender, End::Receiver] {
        network.ip(end, "link set lo up");
    }
    // A third interface, which leads nowhere.
    network.ip(End::Sender, "link add wwan1 type veth peer name socket");
    network.ip(End::Sender, "link set socket up");
    network.ip(End::Sender, "addr add 192.168.77.1/24 dev wwan1");
    network.ip(End::Sender, "link set wwan1 up");
    // And one with other machines behind it.
    network.ip(End::Sender, "link add lan0 type veth peer name machine");
    network.ip(End::Sender, "addr add 192.168.78.1/24 dev lan0");
    for name in ["lan0", "machine"] {
        network.ip(End::Sender, &format!("link set {name} up"));
    }
    network.ip(End::Receiver, &format!("addr add {PUBLIC}/32 dev lo"));
    fs::write(folder.join("password"), "me:secret\n").unwrap();
    let root = folder.join("web");
    site(&root);
    serve_files(network.name(End::Receiver), root);

    let mut reader = Reader { network: &network, folder, invitation: String::new(), serve: None, proxy: None };
    let mut typed = BTreeSet::new();
    for line in PROXY_PAGES.iter().flat_map(|page| commands(page)) {
        if NOT_RUN.iter().any(|(beginning, _)| line.starts_with(beginning)) || !typed.insert(line.clone()) {
            continue;
        }
        assert!(line.starts_with("fairpath "), "the guide has `{line}`: run it here, or say why it is not run");
        reader.types(&line);
    }
    assert!(typed.len() >= 18, "{} commands were found", typed.len());
    if let Some(mut proxy) = reader.proxy.take() {
        proxy.signal("TERM");
        assert!(proxy.end(PATIENCE).success(), "{}", proxy.said());
    }
}

/// The commands of a page, without their prompts.
fn commands(page: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/guide/{page}.md"));
    let (text, mut is_typed, mut found) = (fs::read_to_string(page).unwrap(), false, Vec::new());
    for line in text.lines() {
        if line.starts_with("```") {
            is_typed = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").or(line.strip_prefix("# ")).filter(|_| is_typed) {
            found.push(command.to_owned());
        }
    }
    found
}

/// A web site with a file to download and a repository to clone.
fn site(root: &Path) {
    fs::create_dir_all(root).unwrap();
    fs::write(root.join("large.iso"), [7; 300_000]).unwrap();
    let git = |folder: &Path, words: &[&str]| {
        let folder = folder.to_str().unwrap();
        run(&[&["git", "-C", folder, "-c", "user.name=Me", "-c", "user.email=me@example.com"], words].concat())
            .unwrap();
    };
    let work = root.join("work");
    fs::create_dir_all(&work).unwrap();
    git(&work, &["init", "--quiet"]);
    git(&work, &["commit", "--quiet", "--allow-empty", "-m", "First"]);
    git(root, &["clone", "--quiet", "--bare", "work", "project"]);
    git(&root.join("project"), &["update-server-info"]);
}

/// Serves the files below `root` at port 80 of the public address in a namespace. The thread ends with the test program.
fn serve_files(namespace: &str, root: PathBuf) {
    let listener: TcpListener = inside(namespace, || listen(PUBLIC, 80)).unwrap().into();
    std::thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            let root = root.clone();
            std::thread::spawn(move || drop(answer(tcp, &root)));
        }
    });
}

fn answer(mut tcp: TcpStream, root: &Path) -> std::io::Result<()> {
    let mut reader = BufReader::new(tcp.try_clone()?);
    let (mut first, mut line) = (String::new(), String::new());
    reader.read_line(&mut first)?;
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or("/").split('?').next().unwrap_or("/");
    let mut body = Vec::new();
    let found =
        fs::File::open(root.join(path.trim_start_matches('/'))).and_then(|mut file| file.read_to_end(&mut body));
    let status = if found.is_ok() { "200 OK" } else { "404 Not Found" };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    tcp.write_all(head.as_bytes())?;
    tcp.write_all(&body)
}

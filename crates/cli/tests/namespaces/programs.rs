//! Programs as people run them through a bond whose links take turns to be down. Where one is not installed, the test says
//! that its part is skipped.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::bond::{Bond, bytes};
use crate::network::{End, Link, Network, TWINS, run};
use crate::say;

/// How long a link is down, and how long both are up between.
const DOWN: Duration = Duration::from_millis(700);

/// The site that the browser loads: one page, and its pictures.
const PICTURES: usize = 200;

/// How a link fails.
#[derive(Clone, Copy)]
enum Outage {
    /// Its interface is down: the machine and its programs see it.
    Down,
    /// It loses everything, and nothing tells.
    Silent,
}

impl Outage {
    fn begin(self, network: &Network, link: &Link) {
        match self {
            Self::Down => network.set_link(link, End::Sender, "down"),
            Self::Silent => network.swallow(link),
        }
    }

    fn end(self, network: &Network, link: &Link) {
        match self {
            Self::Down => network.set_link(link, End::Sender, "up"),
            Self::Silent => network.limit(link),
        }
    }
}

/// Has the links take turns to fail until `work` is done; at least one works at each moment.
fn while_links_take_turns<T>(network: &Network, outage: Outage, work: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for link in TWINS.iter().cycle() {
                outage.begin(network, link);
                std::thread::sleep(DOWN);
                outage.end(network, link);
                std::thread::sleep(DOWN);
                if is_done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        // A panic would otherwise wait for the links for ever.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_done.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A program, killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Killed {
    /// Starts it, and waits until it prints something.
    fn that_prints(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let killed = Self(child);
        assert!(out.read(&mut [0; 64]).unwrap() > 0, "the program ended");
        killed
    }
}

fn is_here(program: &str) -> bool {
    let is_here = run(&["sh", "-c", &format!("command -v {program}")]).is_ok();
    if !is_here {
        say(&format!("{program}: skipped, it is not installed"));
    }
    is_here
}

/// A program at the near end, and how it ended. `timeout` ends one that hangs.
fn near(bond: &Bond, words: &[&str]) -> Output {
    let mut command = bond.network.command(End::Sender, "timeout");
    let begun = Instant::now();
    let output = command.arg("60").args(words).env("HOME", bond.scratch.path()).output().unwrap();
    say(&format!("{} ended after {:.1} s while links were down in turn", words[0], begun.elapsed().as_secs_f64()));
    output
}

fn assert_well(output: &Output, bond: &Bond) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}\n{}", output.status, bond.proxy.said());
}

/// A server of HTTP/2 without TLS, which answers with how many bytes came and their hash.
const HTTP2: &str = "
const hash = require('crypto').createHash;
const server = require('http2').createServer();
server.on('stream', stream => {
  const sum = hash('sha256'); let length = 0;
  stream.on('data', chunk => { sum.update(chunk); length += chunk.length; });
  stream.on('end', () => { stream.respond({ ':status': 200 }); stream.end(length + ' ' + sum.digest('hex')); });
});
server.listen(8082, '127.0.0.1', () => console.log('ready'));";

/// The files of a folder by HTTP/1.1 with connections that stay, each answer after a moment.
const FILES: &str = "
const fs = require('fs'), path = require('path');
require('http').createServer((request, response) => {
  const file = path.join(process.argv[1], decodeURIComponent(request.url.split('?')[0]));
  fs.readFile(file, (error, data) => {
    const kind = { '.html': 'text/html', '.svg': 'image/svg+xml' }[path.extname(file)] || 'application/octet-stream';
    response.writeHead(error ? 404 : 200, { 'Content-Type': kind });
    response.end(data);
  });
}).listen(8081, '127.0.0.1', () => console.log('ready'));";

fn node(bond: &Bond, script: &str, argument: &Path) -> Killed {
    let mut command = bond.network.command(End::Receiver, "node");
    Killed::that_prints(command.args(["-e", script]).arg(argument))
}

#[test]
fn programs_of_many_kinds_go_on_while_links_take_turns_to_be_down() {
    let options = ["--forward", "udp:9000=127.0.0.1:9000"];
    let Some(bond) = Bond::with(&options, Ipv4Addr::LOCALHOST) else { return };
    let (scratch, web) = (bond.scratch.path(), bond.web);
    let at = |name: &str| scratch.join(name).display().to_string();
    while_links_take_turns(&bond.network, Outage::Down, || {
        many_small_requests(&bond);
        if is_here("wget") {
            let file = at("by-wget");
            let url = format!("http://{web}/8000000");
            let words = ["wget", "-q", "-t", "1", "-e", "use_proxy=yes", "-e", "http_proxy=http://127.0.0.1:1080"];
            assert_well(&near(&bond, &[&words[..], &["-O", &file, &url]].concat()), &bond);
            assert!(fs::read(&file).unwrap() == bytes(8_000_000), "wget got another file");
        }
        if is_here("node") {
            let _server = node(&bond, HTTP2, &scratch);
            fs::write(at("up"), bytes(6_000_000)).unwrap();
            let sum = run(&["sha256sum", &at("up")]).unwrap();
            let data = format!("@{}", at("up"));
            let words = ["curl", "-sS", "--http2-prior-knowledge", "-x", "socks5h://127.0.0.1:1080", "--data-binary"];
            let done = near(&bond, &[&words[..], &[&data, "http://127.0.0.1:8082/"]].concat());
            assert_well(&done, &bond);
            let said = String::from_utf8_lossy(&done.stdout).into_owned();
            assert_eq!(said, format!("6000000 {}", sum.split(' ').next().unwrap()));
        }
        if is_here("git") && is_here("node") {
            git(&bond, &at("project"), &at("clone"));
        }
        if is_here("srt-live-transmit") {
            srt(&bond);
        }
    });
}

/// Two hundred requests, a connection each, sixteen at once.
fn many_small_requests(bond: &Bond) {
    let urls = format!("http://{}/[1000-1199]", bond.web);
    let words = ["curl", "-sS", "-Z", "--parallel-max", "16", "--no-keepalive", "-x", "socks5h://127.0.0.1:1080"];
    let sizes = ["-o", "/dev/null", "-w", "%{http_code} %{size_download}\\n", &urls];
    let done = near(bond, &[&words[..], &sizes].concat());
    assert_well(&done, bond);
    let mut said: Vec<String> = String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect();
    said.sort();
    let expected: Vec<String> = (1_000..1_200).map(|length| format!("200 {length}")).collect();
    assert_eq!(said, expected);
}

fn git(bond: &Bond, project: &str, clone: &str) {
    let person = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let git = |words: &[&str]| run(&[&["git", "-C", project], &person[..], words].concat()).unwrap();
    fs::create_dir_all(project).unwrap();
    git(&["init", "-q"]);
    for number in 0..60 {
        fs::write(format!("{project}/{number}"), bytes(20_000 + number)).unwrap();
    }
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "all"]);
    git(&["update-server-info"]);
    let _server = node(bond, FILES, Path::new(project));
    let proxy = "http.proxy=socks5h://127.0.0.1:1080";
    assert_well(&near(bond, &["git", "-c", proxy, "clone", "-q", "http://127.0.0.1:8081/.git", clone]), bond);
    for number in 0..60 {
        assert!(fs::read(format!("{clone}/{number}")).unwrap() == bytes(20_000 + number), "file {number}");
    }
}

/// The payload of a packet of SRT, how many there are, and how often one leaves: 2.6 Mbit/s.
const PACKET: usize = 1_316;
const PACKETS: usize = 750;
const APART: Duration = Duration::from_millis(4);

/// At the end of its input `srt-live-transmit` keeps back what fills no packet, and what fills no block of its output,
/// without a bond, too. So some packets follow that are not looked at.
const FOLLOW: usize = 32;

/// A pair of SRT over a forward. Its caller stays for as long as its listener may wait for what is missing.
fn srt(bond: &Bond) {
    let latency = Duration::from_secs(2);
    let url = |mode: &str| format!("srt://127.0.0.1:9000?mode={mode}&latency={}", latency.as_millis());
    let came = bond.scratch.path().join("came");
    let mut listener = bond.network.command(End::Receiver, "srt-live-transmit");
    let out = fs::File::create(&came).unwrap();
    let listener =
        listener.args(["-q", "-chunk:1316", &url("listener"), "file://con"]).stdout(out).stderr(Stdio::null()).spawn();
    let _listener = Killed(listener.unwrap());
    let mut caller = bond.network.command(End::Sender, "srt-live-transmit");
    let caller =
        caller.args(["-q", "-chunk:1316", "file://con", &url("caller")]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut caller = Killed(caller.stderr(Stdio::null()).spawn().unwrap());
    let mut to = caller.0.stdin.take().unwrap();
    // A caller takes nothing before it is connected.
    std::thread::sleep(Duration::from_secs(2));
    let sent = bytes((PACKETS + FOLLOW) * PACKET);
    for packet in sent.chunks(PACKET) {
        to.write_all(packet).unwrap();
        std::thread::sleep(APART);
    }
    std::thread::sleep(2 * latency);
    drop(to);
    let came = fs::read(came).unwrap();
    let (length, looked_at) = (came.len(), &sent[..PACKETS * PACKET]);
    say(&format!(
        "SRT: {} of {} bytes came while links were down in turn",
        length.min(looked_at.len()),
        looked_at.len()
    ));
    assert!(came.starts_with(looked_at), "SRT brought {length} of {} bytes, or others", sent.len());
}

#[test]
fn a_browser_loads_a_site_of_two_hundred_objects_while_links_take_turns_to_be_down() {
    let Some(bond) = Bond::new() else { return };
    let browser = ["chromium", "chromium-browser", "google-chrome"];
    let Some(browser) = browser.into_iter().find(|name| run(&["sh", "-c", &format!("command -v {name}")]).is_ok())
    else {
        say("a browser: skipped, there is no Chromium here");
        return;
    };
    if !is_here("node") {
        return;
    }
    let site = bond.scratch.path().join("site");
    fs::create_dir_all(&site).unwrap();
    let mut page = String::from("<!doctype html><title>loading</title><style>img{width:40px}</style><p id=n></p>");
    for number in 0..PICTURES {
        let hue = number * 360 / PICTURES;
        // Each is large enough to take a while: a picture, and words that nobody sees.
        let words = "x".repeat(20_000);
        let picture = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 40 40'><rect width='40' height='40' \
             fill='hsl({hue},80%,60%)'/><text x='4' y='26' font-size='16'>{number}</text><!--{words}--></svg>"
        );
        fs::write(site.join(format!("{number}.svg")), picture).unwrap();
        page += &format!("<img src='{number}.svg'>");
    }
    page += "<script>onload = () => { const all = [...document.images]; \
             const good = all.filter(one => one.complete && one.naturalWidth > 0).length; \
             n.textContent = document.title = `loaded ${good} of ${all.length}`; }</script>";
    fs::write(site.join("index.html"), page).unwrap();
    let _server = node(&bond, FILES, &site);
    let picture = bond.scratch.path().join("site.png");
    let profile = format!("--user-data-dir={}", bond.scratch.path().join("profile").display());
    let screenshot = format!("--screenshot={}", picture.display());
    let quiet =
        ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
    // By default it asks no proxy for addresses of loopback.
    let proxy = ["--proxy-server=socks5://127.0.0.1:1080", "--proxy-bypass-list=<-loopback>"];
    let page = ["--window-size=900,700", "--timeout=30000", "--virtual-time-budget=30000"];
    let url = "http://127.0.0.1:8081/index.html";
    let words = |last: &[&str]| [&[browser, &profile][..], &quiet, &proxy, &page, last, &[url]].concat().join(" ");
    let shown = |last: &[&str]| near(&bond, &["sh", "-c", &words(last).replace('<', "'<").replace('>', ">'")]);
    // Chromium itself ends all its connections when an interface of the machine goes.
    while_links_take_turns(&bond.network, Outage::Silent, || {
        let done = shown(&["--dump-dom"]);
        assert_well(&done, &bond);
        let said = String::from_utf8_lossy(&done.stdout);
        let good = format!("loaded {PICTURES} of {PICTURES}");
        assert!(said.contains(&good), "{}", said.split("<img").next().unwrap_or_default());
        assert_well(&shown(&[&screenshot]), &bond);
    });
    let size = fs::metadata(&picture).unwrap().len();
    assert!(size > 10_000, "a picture of {size} bytes");
    if let Some(kept) = std::env::var_os("FAIRPATH_SCREENSHOT") {
        fs::copy(&picture, kept).unwrap();
    }
}

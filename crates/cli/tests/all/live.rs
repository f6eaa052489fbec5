//! A picture that ffmpeg sends over two links, of which one goes bad in the middle, and what another ffmpeg decodes of it:
//! through `fairpath stream`, over each link alone, and sent twice. Needs ffmpeg; without it the test says so.

mod links;
mod picture;
mod plain;
mod programs;
mod report;

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Scratch, fairpath, text};
use fairpath_transfer::Ticket;
use links::Links;
use picture::{SECONDS, SENT};
use plain::Plain;
use programs::Program;
use report::Row;

/// Later packets are of no use.
const DEADLINE: Duration = Duration::from_millis(300);

/// How long SRT waits for what it asks for again: two round trips of the slower link and a queue.
const SRT_LATENCY: Duration = Duration::from_millis(700);

/// From when to when the first link is bad, in seconds of the picture.
pub(crate) const BAD: (f64, f64) = (15.0, 25.0);

/// The protocol between the encoder and the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speech {
    MpegTs,
    Srt,
}

/// The carrier of that protocol's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    /// Nothing between the programs and the links: each packet goes on all of them.
    Plain,
    Fairpath,
}

/// A run: what is spoken, what carries it, and over which links.
struct Run {
    name: &'static str,
    speech: Speech,
    carrier: Carrier,
    links: &'static [usize],
}

const RUNS: [Run; 9] = [
    Run { name: "UDP, link A alone", speech: Speech::MpegTs, carrier: Carrier::Plain, links: &[0] },
    Run { name: "UDP, link B alone", speech: Speech::MpegTs, carrier: Carrier::Plain, links: &[1] },
    Run { name: "UDP, all twice", speech: Speech::MpegTs, carrier: Carrier::Plain, links: &[0, 1] },
    Run { name: "fairpath, link A alone", speech: Speech::MpegTs, carrier: Carrier::Fairpath, links: &[0] },
    Run { name: "fairpath, link B alone", speech: Speech::MpegTs, carrier: Carrier::Fairpath, links: &[1] },
    Run { name: "fairpath", speech: Speech::MpegTs, carrier: Carrier::Fairpath, links: &[0, 1] },
    Run { name: "SRT, link A alone", speech: Speech::Srt, carrier: Carrier::Plain, links: &[0] },
    Run { name: "SRT, link B alone", speech: Speech::Srt, carrier: Carrier::Plain, links: &[1] },
    Run { name: "SRT in fairpath", speech: Speech::Srt, carrier: Carrier::Fairpath, links: &[0, 1] },
];

/// A port that nobody uses.
fn free_port() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Run {
    /// Runs it. The pictures that the player decodes are then in `got.nut`.
    fn carry(&self, directory: &Path) {
        let (encoder_port, player_port) = (free_port(), free_port());
        let player = self.player(player_port, directory);
        // Programs need a moment until they listen.
        std::thread::sleep(Duration::from_secs(1));
        match (self.carrier, self.speech) {
            (Carrier::Fairpath, _) => self.through_fairpath(encoder_port, player_port, directory),
            (Carrier::Plain, Speech::MpegTs) => {
                let [from, server] = [encoder_port, free_port()].map(|port| UdpSocket::bind(port).unwrap());
                let links = Links::towards(server.local_addr().unwrap(), self.links, 1);
                let plain = Plain::start(from, links.relays(), server, player_port, DEADLINE);
                self.encode(encoder_port, &links, directory);
                drop(plain);
            }
            (Carrier::Plain, Speech::Srt) => {
                let links = Links::towards(player_port, self.links, 1);
                self.encode(links.relays()[0], &links, directory);
            }
        }
        player.interrupt();
    }

    fn through_fairpath(&self, encoder_port: SocketAddr, player_port: SocketAddr, directory: &Path) {
        let playout = if self.speech == Speech::Srt { "in-order" } else { "steady" };
        let to = format!("udp://{player_port}");
        let listen = ["stream", "recv", "--listen", "127.0.0.1:0", "--to", &to, "--playout", playout, "--json"];
        let mut receiver = Program::start(fairpath(&listen), directory, "recv");
        let first_line = |said: &str| said.split_once('\n').map(|(line, _)| line.to_owned());
        let mut ticket: Ticket = receiver.until("ticket", first_line).parse().unwrap();
        let links = Links::towards(ticket.addresses[0], self.links, 1);
        ticket.addresses = links.relays();
        let (ticket, from) = (ticket.to_string(), format!("udp://{encoder_port}"));
        let deadline = format!("{}ms", DEADLINE.as_millis());
        let send =
            ["stream", "send", &ticket, "--via", "127.0.0.1", "--from", &from, "--deadline", &deadline, "--json"];
        let mut sender = Program::start(fairpath(&send), directory, "send");
        let count = format!("{:?}", self.links.len());
        sender.until("paths", |said| {
            let line: serde_json::Value = serde_json::from_str(said.lines().last()?).ok()?;
            let usable = line["paths"].as_array()?.iter().filter(|path| path["usable"] == true).count();
            (usable.to_string() == count).then_some(())
        });
        self.encode(encoder_port, &links, directory);
        sender.interrupt();
        receiver.interrupt();
    }

    fn player(&self, at: SocketAddr, directory: &Path) -> Program {
        let from = match self.speech {
            Speech::MpegTs => format!("udp://{at}?fifo_size=100000&overrun_nonfatal=1"),
            Speech::Srt => format!("srt://{at}?mode=listener&latency={}", SRT_LATENCY.as_micros()),
        };
        let raw = ["-map", "0:v", "-fps_mode", "passthrough", "-c:v", "rawvideo", "-f", "nut", "got.nut"];
        Program::ffmpeg(&[&["-copyts", "-i", &from], &raw[..]].concat(), directory, "player")
    }

    /// Sends the whole picture, and the first link is bad in the middle.
    fn encode(&self, to: SocketAddr, links: &Links, directory: &Path) {
        let to = match self.speech {
            Speech::MpegTs => format!("udp://{to}?pkt_size=1316"),
            Speech::Srt => format!("srt://{to}?mode=caller&pkt_size=1316&latency={}", SRT_LATENCY.as_micros()),
        };
        let encoder = Program::ffmpeg(&["-re", "-i", SENT, "-c", "copy", "-f", "mpegts", &to], directory, "encoder");
        let begun = Instant::now();
        for (at, is_bad) in [(BAD.0, true), (BAD.1, false)] {
            std::thread::sleep(Duration::from_secs_f64(at).saturating_sub(begun.elapsed()));
            links.set_bad(self.links, is_bad);
        }
        encoder.end(Duration::from_secs(2 * SECONDS as u64));
        // Waits for packets in flight and pictures to be shown.
        std::thread::sleep(Duration::from_secs(3));
    }
}

/// Prints past the capture of test output: what was left out is to be seen when all is well.
fn has_ffmpeg() -> bool {
    let asked = Command::new("ffmpeg").args(["-hide_banner", "-protocols"]).stderr(Stdio::null()).output();
    let can = asked.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).lines().any(|line| line.trim() == "srt"));
    if !can {
        println!("skipped: there is no `ffmpeg` that speaks SRT here (Debian: apt-get install ffmpeg)");
    }
    can
}

/// The whole comparison, of which the table and the picture are in `docs`: FAIRPATH_LIVE_OUT names the file for the
/// picture, and FAIRPATH_LIVE_KEEP a directory in which what the programs said is kept.
#[test]
#[ignore = "seven minutes of real time, in which nothing else may want the processors; needs ffmpeg"]
fn a_picture_over_a_link_that_goes_bad() {
    if !has_ffmpeg() {
        return;
    }
    let scratch = Scratch::new();
    picture::make(&scratch.0);
    let wanted = std::env::var("FAIRPATH_LIVE_RUNS").ok();
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted.split(';').any(|one| one == name));
    let mut rows = Vec::new();
    for run in RUNS.iter().filter(|run| is_wanted(run.name)) {
        run.carry(&scratch.0);
        let row = Row { name: run.name, shown: picture::judge(&scratch.0, "got.nut") };
        println!("{}", row.line());
        rows.push(row);
        if let Ok(kept) = std::env::var("FAIRPATH_LIVE_KEEP") {
            keep(&scratch.0, Path::new(&kept), run.name);
        }
    }
    println!("\n{}", report::table(&rows));
    if let Ok(file) = std::env::var("FAIRPATH_LIVE_OUT") {
        fs::write(&file, report::draw(&rows)).unwrap();
    }
    if wanted.is_none() {
        let whole = |name: &str| rows.iter().find(|row| row.name == name).unwrap().whole(0.0, SECONDS as f64);
        let ours = whole("fairpath");
        for other in ["UDP, link A alone", "UDP, link B alone", "UDP, all twice", "fairpath, link B alone"] {
            assert!(ours >= whole(other) - 0.01, "{other}: {} of pictures whole, and {ours} of ours", whole(other));
        }
        assert!(whole("SRT in fairpath") >= whole("SRT, link A alone"), "SRT is no better over both links");
    }
}

/// Keeps what the programs of a run have said.
fn keep(from: &Path, to: &Path, name: &str) {
    fs::create_dir_all(to).unwrap();
    let name = name.replace([' ', ','], "_");
    for file in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let own = text(&file).rsplit('/').next().unwrap_or_default();
        if own.ends_with(".out") || own.ends_with(".err") || own.ends_with(".log") {
            let _ = fs::copy(&file, to.join(format!("{name}.{own}")));
        }
    }
}

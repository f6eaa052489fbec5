//! Many small files, beside `tar` over one TCP connection with the same durability, on loopback:
//! `cargo bench -p fairpath-cli --bench files`.
//!
//! The program as a person runs it: from the start of `fairpath send` until both ends have ended. `tar`
//! writes into a socket, another `tar` unpacks from it, and then the file system is synced. The two
//! take turns, since other work on the machine disturbs both; the median of their ratios counts. Goal:
//! at most 1.5 for 10,000 files of 4 kB.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const RATIO_GOAL: f64 = 1.5;

/// How many files are in one directory.
const PER_DIRECTORY: usize = 500;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let scratch = Scratch::new()?;
    println!("{ROUNDS} rounds each, medians; the two take turns");
    for (name, count, bytes, goal) in
        [("10,000 files of 4 kB", 10_000, 4096, Some(RATIO_GOAL)), ("100,000 empty files", 100_000, 0, None)]
    {
        let tree = scratch.tree(count, bytes)?;
        let (mut tars, mut sends, mut ratios) = (vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            let (tar, send) = (by_tar(&scratch, &tree)?, by_fairpath(&scratch, &tree)?);
            tars.push(tar.as_secs_f64());
            sends.push(send.as_secs_f64());
            ratios.push(send.as_secs_f64() / tar.as_secs_f64());
        }
        let (tar, send, ratio) = (median(tars), median(sends), median(ratios));
        println!("{name}: tar {tar:.2} s, fairpath {send:.2} s, ratio {ratio:.2}");
        if let Some(goal) = goal {
            println!("at most {goal} times as long: {}", if ratio <= goal { "met" } else { "NOT met" });
        }
        fs::remove_dir_all(tree)?;
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn by_tar(scratch: &Scratch, tree: &Path) -> Outcome<Duration> {
    let to = scratch.empty()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let begun = Instant::now();
    let (directory, parent) = (to.clone(), tree.parent().expect("it is in the scratch directory"));
    let receiving = std::thread::spawn(move || -> std::io::Result<bool> {
        let (stream, _) = listener.accept()?;
        let unpacked =
            Command::new("tar").args(["xf", "-", "-C"]).arg(&directory).stdin(OwnedFd::from(stream)).status()?;
        let synced = Command::new("sync").arg("-f").arg(&directory).status()?;
        Ok(unpacked.success() && synced.success())
    });
    let stream = TcpStream::connect(address)?;
    let mut tar = Command::new("tar");
    tar.args(["cf", "-", "-C"]).arg(parent).arg(tree.file_name().expect("it has a name"));
    let packed = tar.stdout(OwnedFd::from(stream.try_clone()?)).status()?;
    stream.shutdown(Shutdown::Write)?;
    let unpacked = receiving.join().expect("it does not panic")?;
    let elapsed = begun.elapsed();
    if packed.success() && unpacked { Ok(elapsed) } else { Err("tar failed".into()) }
}

fn by_fairpath(scratch: &Scratch, tree: &Path) -> Outcome<Duration> {
    let to = scratch.empty()?;
    let program = env!("CARGO_BIN_EXE_fairpath");
    let mut recv = Command::new(program);
    recv.args(["recv", "--quiet", "--listen", "127.0.0.1:0", "--dir"]).arg(&to);
    let mut recv = recv.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut ticket = String::new();
    BufReader::new(recv.stdout.take().ok_or("it has a standard output")?).read_line(&mut ticket)?;
    let begun = Instant::now();
    let sent = Command::new(program).args(["send", "--quiet"]).arg(tree).arg(ticket.trim()).status()?;
    if !sent.success() {
        // It would wait for ever.
        recv.kill()?;
    }
    let received = recv.wait()?;
    let elapsed = begun.elapsed();
    if sent.success() && received.success() { Ok(elapsed) } else { Err("fairpath failed".into()) }
}

/// A directory that disappears in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("fairpath-bench-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn tree(&self, count: usize, bytes: usize) -> Outcome<PathBuf> {
        let root = self.0.join("tree");
        for number in 0..count {
            let directory = root.join(format!("{:03}", number / PER_DIRECTORY));
            if number % PER_DIRECTORY == 0 {
                fs::create_dir_all(&directory)?;
            }
            // Bytes that nothing can shrink, and the same in every run.
            let mut content = vec![0; bytes];
            blake3::Hasher::new().update(&number.to_be_bytes()).finalize_xof().fill(&mut content);
            fs::write(directory.join(number.to_string()), content)?;
        }
        Ok(root)
    }

    /// An empty directory, with nothing left to be written of what was there before.
    fn empty(&self) -> Outcome<PathBuf> {
        let to = self.0.join("to");
        if to.exists() {
            fs::remove_dir_all(&to)?;
        }
        fs::create_dir(&to)?;
        Command::new("sync").arg("-f").arg(&to).status()?;
        Ok(to)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

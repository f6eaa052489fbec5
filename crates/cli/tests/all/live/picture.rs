//! The test picture: how it is made, and what of it the other end has decoded.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::programs::Program;

/// Pictures in a second.
pub(crate) const RATE: f64 = 25.0;

/// How much of it is judged.
pub(crate) const SECONDS: usize = 40;

/// A tail that is not judged: a player that is told to end discards what it has not decoded.
const TAIL: usize = 2;

/// Its bit rate, in kbit/s. The rate is kept over a fifth of a second, and each second begins with a
/// key frame.
pub(crate) const KBPS: usize = 2_500;

/// The time limit of decoding and comparing, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The picture as it is sent.
pub(crate) const SENT: &str = "sent.ts";

/// A picture that matched exactly counts as this much in dB: the mean of exact ones would be infinite.
pub(crate) const EXACT_DB: f64 = 60.0;

/// Encodes the picture once, so that the same is sent each time.
pub(crate) fn make(directory: &Path) {
    let all = SECONDS + TAIL;
    let source = format!("testsrc2=size=640x360:rate={RATE}:duration={all},noise=alls=8:allf=t:all_seed=1");
    let (rate, buffer) = (format!("{KBPS}k"), format!("{}k", KBPS / 5));
    let encoder = ["-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-g", "25", "-b:v", &rate];
    let steady = ["-maxrate", &rate, "-bufsize", &buffer, "-x264-params", "nal-hrd=cbr:threads=2"];
    let words = [&["-f", "lavfi", "-i", &source][..], &encoder, &steady, &["-f", "mpegts", "made.ts"]].concat();
    Program::ffmpeg(&words, directory, "make").end(PATIENCE);
    // The same step as in sending: times are then those that arrive.
    let words = ["-i", "made.ts", "-c", "copy", "-f", "mpegts", SENT];
    Program::ffmpeg(&words, directory, "copy").end(PATIENCE);
}

/// The quality of one picture at the other end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    /// It is exactly what was sent.
    pub(crate) whole: bool,
    /// It is there at all; else the one before is still shown.
    pub(crate) there: bool,
    /// The squared error of what is shown in its place, a mean over its points.
    pub(crate) error: f64,
    /// Structural similarity of what is shown in its place.
    pub(crate) ssim: f64,
}

/// All pictures that were sent, in order, as the other end shows them that decoded `got`.
pub(crate) fn judge(directory: &Path, got: &str) -> Vec<Shown> {
    let (sent, came) = (hashes(directory, SENT), hashes(directory, got));
    let at = |time: i64| (time as f64 * RATE / 1e6).round() as i64;
    let came: BTreeMap<i64, &String> = came.iter().map(|(time, hash)| (at(*time), hash)).collect();
    let words = "[0:v]split[a][b];[1:v]split[c][d];[a][c]psnr=stats_file=psnr.log[x];[b][d]ssim=stats_file=ssim.log[y]";
    let inputs = ["-copyts", "-i", SENT, "-i", got, "-lavfi", words];
    let none = ["-fps_mode", "passthrough", "-f", "null", "-"];
    let words = [&inputs[..], &["-map", "[x]"], &none, &["-map", "[y]"], &none].concat();
    Program::ffmpeg(&words, directory, "compare").end(PATIENCE);
    let (errors, ssim) = (column(directory, "psnr.log", "mse_avg:"), column(directory, "ssim.log", "All:"));
    // Pictures before the first that arrived are compared with nothing.
    let before = sent.len().saturating_sub(errors.len());
    let shown = |(number, (time, hash)): (usize, &(i64, String))| {
        let of = |column: &[f64]| number.checked_sub(before).and_then(|number| column.get(number)).copied();
        let (mse, ssim) = (of(&errors).unwrap_or(f64::from(u16::MAX)), of(&ssim).unwrap_or(0.0));
        let there = came.get(&at(*time));
        Shown { whole: there.is_some_and(|there| *there == hash), there: there.is_some(), error: mse, ssim }
    };
    sent.iter().enumerate().map(shown).take((SECONDS as f64 * RATE) as usize).collect()
}

/// The time in µs and the hash of each decoded picture.
fn hashes(directory: &Path, file: &str) -> Vec<(i64, String)> {
    let words = ["-copyts", "-i", file, "-map", "0:v", "-fps_mode", "passthrough", "-enc_time_base", "1:1000000"];
    let words = [&words[..], &["-f", "framemd5", "hashes.txt"]].concat();
    Program::ffmpeg(&words, directory, "hash").end(PATIENCE);
    let text = fs::read_to_string(directory.join("hashes.txt")).unwrap();
    let base = text.lines().find_map(|line| line.strip_prefix("#tb 0: 1/")).expect("a time base").trim();
    let base: i64 = base.parse().unwrap();
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        (fields[2].parse::<i64>().unwrap() * 1_000_000 / base, fields[5].to_owned())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect()
}

/// The numbers that follow a word in each line.
fn column(directory: &Path, file: &str, word: &str) -> Vec<f64> {
    let text = fs::read_to_string(directory.join(file)).unwrap();
    let number = |line: &str| {
        let rest = line.split_once(word)?.1;
        rest.split_whitespace().next()?.parse().ok()
    };
    text.lines().filter_map(number).collect()
}

/// The signal-to-noise ratio of pictures with so great an error, in dB.
pub(crate) fn psnr(error: f64) -> f64 {
    match error > 0.0 {
        true => (10.0 * (255.0 * 255.0 / error).log10()).clamp(0.0, EXACT_DB),
        false => EXACT_DB,
    }
}

//! `fairpath recv` and `fairpath send` as a person runs them, over loopback.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Listening, Scratch, error_of, fairpath, run, text};
use fairpath_transfer::Ticket;
use serde_json::Value;

/// A receiver into the scratch directory's `to`.
fn receive(scratch: &Scratch, more: &[&str]) -> Listening {
    let to = to(scratch);
    Listening::start(&[&["recv", "--listen", "127.0.0.1:0", "--dir", text(&to)], more].concat())
}

fn to(scratch: &Scratch) -> PathBuf {
    let path = scratch.0.join("to");
    fs::create_dir_all(&path).unwrap();
    path
}

fn send(files: &[&Path], ticket: &str, more: &[&str]) -> Output {
    fairpath(&["send"]).args(files).arg(ticket).args(more).output().unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn partial_files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let listed = fs::read_dir(directory.join(".fairpath-partial")).into_iter().flatten();
    let paths = listed.filter_map(|item| Some(item.ok()?.path()));
    paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

#[test]
fn files_and_directories_arrive_and_both_ends_sum_up() {
    let scratch = Scratch::new();
    let one = scratch.file("from/one file", &[7; 300_000]);
    let tree = scratch.0.join("from/tree");
    fs::create_dir_all(tree.join("empty")).unwrap();
    fs::write(tree.join("x"), "x").unwrap();
    let trace = scratch.0.join("trace.ndjson");
    let recv = receive(&scratch, &["--json"]);
    let output = send(&[&one, &tree], &recv.ticket, &["--json", "--trace", trace.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let sent: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (code, received, errors) = recv.end();
    assert_eq!(code, Some(0), "{errors}");
    let received: Value = serde_json::from_str(&received).unwrap();
    for (summary, role) in [(&sent, "send"), (&received, "receive")] {
        assert_eq!((&summary["files"], &summary["bytes"]), (&2.into(), &300_001.into()));
        assert_eq!(summary["role"], role);
        assert!(!summary["paths"].as_array().unwrap().is_empty(), "{summary}");
    }
    assert!(errors.contains("received 2 files, 300.0 kB"), "{errors}");
    assert_eq!(fs::read(to(&scratch).join("one file")).unwrap(), [7; 300_000]);
    assert!(to(&scratch).join("tree/empty").is_dir());
    assert!(fs::read_to_string(trace).unwrap().starts_with('{'));
}

#[test]
fn what_the_user_can_get_wrong_is_one_clear_error() {
    let scratch = Scratch::new();
    let file = scratch.file("from/x", b"content");
    let recv = receive(&scratch, &[]);

    let truncated = send(&[&file], &recv.ticket[..40], &[]);
    assert!(error_of(&truncated).contains("truncated"));
    assert_eq!(truncated.status.code(), Some(2));

    let missing = send(&[Path::new("/nowhere/x")], &recv.ticket, &[]);
    assert_eq!(error_of(&missing), "error: no such file: /nowhere/x");
    assert_eq!(missing.status.code(), Some(1));

    let unknown = send(&[&file], &recv.ticket, &["--congestion", "magic"]);
    assert!(error_of(&unknown).contains("'magic'"));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("olia"), "the names that exist are listed: {unknown:?}");
    assert_eq!(unknown.status.code(), Some(2));

    let mut other: Ticket = recv.ticket.parse().unwrap();
    other.fingerprint = [1; 32];
    let stranger = send(&[&file], &other.to_string(), &[]);
    assert!(error_of(&stranger).contains("not the one meant"), "{stranger:?}");
    assert_eq!(stranger.status.code(), Some(1));
    assert_eq!(fs::read_dir(to(&scratch)).unwrap().count(), 0);
}

#[test]
fn a_file_in_place_of_the_directory_is_told_before_anybody_is_invited() {
    let scratch = Scratch::new();
    let below_a_file = scratch.file("file", b"").join("inbox");
    let output = crate::common::run(&["recv", "--dir", text(&below_a_file)]);
    assert!(error_of(&output).ends_with("file is not a directory"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "no ticket");
}

#[test]
fn both_ends_name_their_paths_and_what_each_carried() {
    let scratch = Scratch::new();
    // Paths are introduced half a second after data began to flow.
    let file = scratch.large("from/large", 1_000);
    let recv = receive(&scratch, &[]);
    let sent = send(&[&file], &recv.ticket, &["--via", "127.0.1.1", "--via", "127.0.2.1"]);
    assert!(sent.status.success(), "{sent:?}");
    let sent = String::from_utf8(sent.stderr).unwrap();
    let (_, _, received) = recv.end();
    for (said, names) in [(&sent, ["lo:127.0.1.1", "lo:127.0.2.1"]), (&received, ["lo/127.0.1.1", "lo/127.0.2.1"])] {
        let begun = said.lines().find(|line| line.starts_with("paths: ")).unwrap_or_else(|| panic!("{said}"));
        let ended = said.lines().find(|line| line.starts_with("  2 paths: ")).unwrap_or_else(|| panic!("{said}"));
        for name in names {
            let bound = [format!("{name} (device)"), format!("{name} (source address)")];
            assert!(bound.iter().any(|one| begun.contains(one)), "{said}");
            assert!(ended.contains(&format!("{name} ")) && ended.contains(" %"), "{said}");
        }
        assert!(!said.contains("path open"), "what the first line names is not told again: {said}");
    }
}

#[test]
fn wrong_secrets_do_not_end_a_waiting_receiver() {
    let scratch = Scratch::new();
    let file = scratch.file("from/x", b"content");
    let recv = receive(&scratch, &[]);
    let wrong = recv.ticket_with_wrong_secret();
    for attempt in 1..=4 {
        let refused = send(&[&file], &wrong, &[]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(error_of(&refused).contains("the secret in the ticket is wrong"), "{attempt}: {refused:?}");
    }
    assert_eq!(fs::read_dir(to(&scratch)).unwrap().count(), 0);
    assert!(send(&[&file], &recv.ticket, &[]).status.success());
    assert_eq!(recv.end().0, Some(0));
}

#[test]
fn a_second_sender_is_refused_while_the_first_one_sends() {
    let scratch = Scratch::new();
    let file = scratch.large("from/large", 600);
    let other = scratch.file("from/other", b"content");
    let recv = receive(&scratch, &[]);
    let mut first = fairpath(&["send", text(&file), &recv.ticket]).stderr(Stdio::null()).spawn().unwrap();
    until("the first bytes", || !partial_files(&to(&scratch), ".part").is_empty());
    let second = send(&[&other], &recv.ticket, &[]);
    if to(&scratch).join("large").exists() {
        println!("skipped: this machine is too fast, the first transfer is over");
    } else {
        assert!(error_of(&second).contains("another sender uses this ticket"), "{second:?}");
        assert_eq!(second.status.code(), Some(1));
    }
    assert!(first.wait().unwrap().success(), "the first one is not disturbed");
    assert_eq!(recv.end().0, Some(0));
    assert!(!to(&scratch).join("other").exists());
}

#[test]
fn an_existing_file_stays_unless_forced() {
    let scratch = Scratch::new();
    let file = scratch.file("from/x", b"new");
    fs::write(to(&scratch).join("x"), b"precious").unwrap();
    let recv = receive(&scratch, &[]);
    let refused = send(&[&file], &recv.ticket, &[]);
    assert!(error_of(&refused).contains("\"x\" already exists"), "{refused:?}");
    assert!(error_of(&refused).contains("--existing skip"), "{refused:?}");
    assert_eq!(fs::read(to(&scratch).join("x")).unwrap(), b"precious");
    // The receiver goes on waiting, and the same ticket is good once the name is free.
    fs::remove_file(to(&scratch).join("x")).unwrap();
    assert!(send(&[&file], &recv.ticket, &[]).status.success());
    let (code, _, errors) = recv.end();
    assert!(code == Some(0) && errors.contains("still waiting"), "{errors}");
    assert_eq!(fs::read(to(&scratch).join("x")).unwrap(), b"new");
    fs::write(to(&scratch).join("x"), b"precious").unwrap();

    let recv = receive(&scratch, &["--force"]);
    assert!(send(&[&file], &recv.ticket, &["--quiet"]).stderr.is_empty());
    assert_eq!(recv.end().0, Some(0));
    assert_eq!(fs::read(to(&scratch).join("x")).unwrap(), b"new");
}

#[test]
fn a_killed_sender_resumes_with_the_same_ticket() {
    let scratch = Scratch::new();
    let file = scratch.large("from/large", 300);
    let recv = receive(&scratch, &[]);
    let mut first = fairpath(&["send", text(&file), &recv.ticket]).stderr(Stdio::null()).spawn().unwrap();
    until("a good part", || {
        partial_files(&to(&scratch), ".part")
            .iter()
            .any(|part| fs::metadata(part).is_ok_and(|part| part.len() > 50_000_000))
    });
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!to(&scratch).join("large").exists());

    let second = send(&[&file], &recv.ticket, &["--json"]);
    assert!(second.status.success(), "{second:?}");
    let summary: Value = serde_json::from_slice(&second.stdout).unwrap();
    assert!(summary["resumed_bytes"].as_u64().unwrap() > 10_000_000, "{summary}");
    let (code, _, errors) = recv.end();
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(fs::metadata(to(&scratch).join("large")).unwrap().len(), 300_000_000);
    assert!(!to(&scratch).join(".fairpath-partial").exists());
}

#[test]
fn a_killed_receiver_uses_what_its_journal_says() {
    let scratch = Scratch::new();
    let file = scratch.large("from/large", 600);
    let mut recv = receive(&scratch, &[]);
    let mut first = fairpath(&["send", text(&file), &recv.ticket]).stderr(Stdio::null()).spawn().unwrap();
    until("a journal", || !partial_files(&to(&scratch), ".journal").is_empty() || to(&scratch).join("large").exists());
    recv.child.kill().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    if to(&scratch).join("large").exists() {
        println!("skipped: this machine is too fast, everything arrived within a second");
        return;
    }

    let recv = receive(&scratch, &[]);
    let second = send(&[&file], &recv.ticket, &["--json"]);
    assert!(second.status.success(), "{second:?}");
    let summary: Value = serde_json::from_slice(&second.stdout).unwrap();
    assert!(summary["resumed_bytes"].as_u64().unwrap() > 1_000_000, "{summary}");
    assert_eq!(recv.end().0, Some(0));
    assert_eq!(fs::metadata(to(&scratch).join("large")).unwrap().len(), 600_000_000);
}

#[test]
fn a_file_that_vanishes_is_named_with_exit_code_3_and_can_follow() {
    let scratch = Scratch::new();
    let large = scratch.large("from/large", 400);
    let last = scratch.file("from/last", b"content");
    let tree = large.parent().unwrap().to_owned();
    let recv = receive(&scratch, &[]);
    let mut sending = fairpath(&["send", text(&tree), &recv.ticket]);
    let sending = sending.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("data", || !partial_files(&to(&scratch), ".part").is_empty());
    fs::rename(&last, scratch.0.join("elsewhere")).unwrap();
    let sent = sending.wait_with_output().unwrap();
    assert_eq!(sent.status.code(), Some(3), "{sent:?}");
    assert!(error_of(&sent).contains("1 file was not sent, 1 is in place"), "{sent:?}");
    let said = String::from_utf8_lossy(&sent.stderr).into_owned();
    assert!(said.contains("from/last vanished before it was sent"), "{said}");

    fs::rename(scratch.0.join("elsewhere"), &last).unwrap();
    let sent = send(&[&tree], &recv.ticket, &["--json"]);
    assert!(sent.status.success(), "{sent:?}");
    let (code, _, errors) = recv.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("not sent: from/last vanished") && errors.contains("still waiting"), "{errors}");
    assert_eq!(fs::read(to(&scratch).join("from/last")).unwrap(), b"content");
    assert!(!to(&scratch).join(".fairpath-partial").exists());
}

#[test]
fn what_is_left_out_is_named_at_both_ends_with_exit_code_3() {
    let scratch = Scratch::new();
    scratch.file("from/d/x", b"x");
    for (name, target) in [("in", "x"), ("out", "/etc/hostname")] {
        std::os::unix::fs::symlink(target, scratch.0.join("from/d").join(name)).unwrap();
    }
    let root = scratch.0.join("from/d");
    let recv = receive(&scratch, &["--json"]);
    let output = send(&[&root], &recv.ticket, &["--json"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let (code, received, errors) = recv.end();
    assert_eq!(code, Some(3), "{errors}");
    // Behind the summary stands the error.
    let summary = |text: &str| serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap();
    let (sent, received) = (summary(str::from_utf8(&output.stdout).unwrap()), summary(&received));
    for (summary, path) in [(&sent, text(&root.join("out"))), (&received, "d/out")] {
        assert_eq!(summary["skipped"].as_array().unwrap().len(), 1, "{summary}");
        assert_eq!(summary["skipped"][0]["path"], path);
        assert!(summary["skipped"][0]["reason"].as_str().unwrap().contains("may lead out"), "{summary}");
    }
    assert_eq!(received["names"], serde_json::json!(["d/x"]));
    assert_eq!(fs::read_link(to(&scratch).join("d/in")).unwrap(), Path::new("x"));
    assert!(!to(&scratch).join("d/out").exists());
    // Links that the user skips are no failure.
    let recv = receive(&scratch, &["--force"]);
    let output = send(&[&root], &recv.ticket, &["--links", "skip"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(recv.end().0, Some(0));
}

#[test]
fn a_destination_that_takes_nothing_is_told_before_anybody_is_invited() {
    let scratch = Scratch::new();
    for (options, told) in [("ro", "is read-only"), ("size=4k", "the disk is full"), ("nr_inodes=2", "inodes")] {
        let path = scratch.0.join(options);
        fs::create_dir_all(&path).unwrap();
        let mounted =
            std::process::Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            println!("skipped: no tmpfs can be mounted here; it needs root");
            return;
        }
        // It takes what there is: a page, or the last inode.
        let _ = fs::write(path.join("all"), [1; 4096]);
        let output = fairpath(&["recv", "--listen", "127.0.0.1:0", "--dir", text(&path.join("new"))]).output().unwrap();
        let _ = std::process::Command::new("umount").arg("-l").arg(&path).status();
        assert_eq!(output.status.code(), Some(1), "{options}: {output:?}");
        assert!(output.stdout.is_empty() && error_of(&output).contains(told), "{options}: {output:?}");
    }
}

#[test]
fn a_dry_run_lists_what_the_patterns_leave_and_needs_no_ticket() {
    let scratch = Scratch::new();
    for name in ["d/a.o", "d/keep.o", "d/b.c", "d/target/x"] {
        scratch.file(name, b"123");
    }
    let root = scratch.0.join("d");
    let patterns = ["--exclude", "*.o", "--exclude", "/target/", "--include", "keep.o"];
    let list =
        |more: &[&str]| fairpath(&["send", "--dry-run", text(&root)]).args(patterns).args(more).output().unwrap();
    let output = list(&[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "d/\nd/b.c (3 B)\nd/keep.o (3 B)\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("would send 2 files, 6 B; nothing was sent"));
    let listed: Value = serde_json::from_slice(&list(&["--json"]).stdout).unwrap();
    assert_eq!((&listed["files"], &listed["entries"][1]["name"]), (&2.into(), &"d/b.c".into()));

    let recv = receive(&scratch, &[]);
    assert!(send(&[&root], &recv.ticket, &patterns).status.success());
    assert_eq!(recv.end().0, Some(0));
    assert!(to(&scratch).join("d/keep.o").exists() && !to(&scratch).join("d/target").exists());

    let wrong = fairpath(&["send", "--dry-run", text(&root), "--exclude", "a["]).output().unwrap();
    assert!(wrong.status.code() == Some(2) && error_of(&wrong).contains("\"a[\""), "{wrong:?}");
}

#[test]
fn two_files_of_one_name_are_told_by_their_paths() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.file("a/x", b"1"), scratch.file("b/x", b"2"));
    let output = send(&[&one, &other], &receive(&scratch, &[]).ticket, &[]);
    let error = error_of(&output);
    assert!(
        error.contains(text(&one)) && error.contains(text(&other)) && error.contains("would both arrive"),
        "{error}"
    );
}

#[test]
fn no_level_of_the_log_shows_what_would_end_a_connection() {
    let scratch = Scratch::new();
    let file = scratch.file("from/x", b"content");
    let recv = receive(&scratch, &[]);
    let sent = fairpath(&["send", text(&file), &recv.ticket]).env("FAIRPATH_LOG", "debug").output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.contains("DEBUG"), "{said}");
    assert!(!said.contains("encrypted extensions"), "{said}");
}

#[test]
fn a_limit_of_file_sizes_leaves_a_file_out_and_ends_nothing() {
    let scratch = Scratch::new();
    let (large, small) = (scratch.large("from/large", 30), scratch.file("from/small", b"small"));
    let program =
        format!("ulimit -f 10240 && exec '{}' recv --listen 127.0.0.1:0 --dir to", env!("CARGO_BIN_EXE_fairpath"));
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", &program]).current_dir(&scratch.0);
    let mut recv = Listening::of(limited);
    let sent = send(&[&large, &small], &recv.ticket, &[]);
    assert_eq!(sent.status.code(), Some(3), "{sent:?}");
    assert!(String::from_utf8_lossy(&sent.stderr).contains("ulimit -f"), "{sent:?}");
    assert_eq!(fs::read(to(&scratch).join("small")).unwrap(), b"small");
    assert_eq!(recv.child.try_wait().unwrap(), None, "it waits for what was left out");
}

/// The output of a program goes through, and nothing but that: `tar c … | fairpath send -`, `recv --to - | tar x`.
#[test]
fn standard_input_is_passed_on_to_standard_output() {
    let scratch = Scratch::new();
    let data = vec![b'x'; 3_000_001];
    let input = scratch.file("input", &data);
    let mut recv = fairpath(&["recv", "--listen", "127.0.0.1:0", "--to", "-", "--json"])
        .stdout(fs::File::create(scratch.0.join("output")).unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(recv.stderr.take().unwrap());
    let mut ticket = String::new();
    told.read_line(&mut ticket).unwrap();
    let mut send = fairpath(&["send", "-", ticket.trim_end(), "--name", "letter"]);
    let sent = send.stdin(fs::File::open(&input).unwrap()).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    let mut said = String::new();
    told.read_to_string(&mut said).unwrap();
    assert_eq!(recv.wait().unwrap().code(), Some(0), "{said}");
    assert!(fs::read(scratch.0.join("output")).unwrap() == data, "nothing but the data");
    let summary: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["names"], &summary["bytes"]), (&serde_json::json!(["letter"]), &3_000_001.into()));
    assert!(String::from_utf8_lossy(&sent.stderr).contains("a stream is sent"), "{sent:?}");

    let both = run(&["send", "-", "-"]);
    assert!(error_of(&both).contains("both the ticket and what is sent"), "{both:?}");
    assert_eq!(both.status.code(), Some(2));
}

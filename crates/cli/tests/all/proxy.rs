//! `serve`, `invite`, `join`, `proxy`, `run`, `devices`, `revoke`, as a person types them.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{Scratch, error_of, fairpath, run, text};

const LIMIT: Duration = Duration::from_secs(30);

/// A program whose standard error is read line by line, killed when it is dropped.
struct Telling {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Telling {
    fn start(arguments: &[&str]) -> Self {
        Self::begin(fairpath(arguments))
    }

    fn begin(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (to, lines) = mpsc::channel();
        std::thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| to.send(line)));
        Self { child, lines }
    }

    /// The rest of the next line that begins so.
    fn told(&self, beginning: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("'{beginning}' was not told"));
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.to_owned();
            }
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_device_joins_its_programs_go_through_and_it_is_revoked() {
    let scratch = Scratch::new();
    let (far, near) = (scratch.0.join("far"), scratch.0.join("near"));
    let (far, near) = (text(&far), text(&near));
    let serve = Telling::start(&["serve", "--listen", "127.0.0.1:0", "--state", far]);
    serve.told("serving at 127.0.0.1:");
    let invited = run(&["invite", "laptop", "--state", far]);
    let invitation = String::from_utf8(invited.stdout).unwrap();
    assert!(invitation.starts_with("fp1"), "{}", String::from_utf8_lossy(&invited.stderr));

    // From a pipe, so that it stands on no command line.
    let mut join = fairpath(&["join", "--state", near, "--via", "127.0.0.1"]);
    let mut join = join.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    join.stdin.take().unwrap().write_all(invitation.as_bytes()).unwrap();
    let joined = join.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&joined.stderr).into_owned();
    assert!(joined.status.success() && said.contains("joined as laptop"), "{said}");
    serve.told("laptop: joined");

    let proxy = Telling::start(&["proxy", "--listen", "127.0.0.1:0", "--state", near, "--via", "127.0.0.1"]);
    let port = proxy.told("SOCKS5 and HTTP proxy at ");
    proxy.told("connected to the far end as laptop");
    serve.told("laptop: connected");

    // The variables lead to the port, which refuses what is not public.
    let echo = "echo $ALL_PROXY $https_proxy $NO_PROXY";
    let variables = fairpath(&["run", "--state", near, "--", "sh", "-c", echo]).output().unwrap();
    let expected = format!("socks5h://{port} http://{port} localhost,127.0.0.1,::1\n");
    assert_eq!(String::from_utf8_lossy(&variables.stdout), expected);
    if let Ok(curl) = Command::new("curl").args(["-sS", "-x", &format!("http://{port}"), "http://10.0.0.1/"]).output() {
        let said = String::from_utf8_lossy(&curl.stdout).into_owned();
        assert!(said.contains("10.0.0.1 is a private address, which this device may not reach"), "{said}");
    }

    let devices = String::from_utf8(run(&["devices", "--state", far]).stdout).unwrap();
    assert!(devices.contains("laptop") && devices.contains("public"), "{devices}");
    let revoked = run(&["revoke", "laptop", "--state", far]);
    assert!(revoked.status.success());
    proxy.told("the connection to the far end is lost: the far end has revoked this device");
    serve.told("laptop: gone: it was revoked");
    assert!(String::from_utf8(run(&["devices", "--state", far]).stdout).unwrap().contains("No device has joined."));
}

/// The program under a limit of open files that it may raise.
fn with_few_files(arguments: &[&str]) -> Command {
    let program = fairpath(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -S -n 128; exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args());
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

#[test]
fn more_connections_are_carried_than_a_shell_lets_programs_have_open_files() {
    const CONNECTIONS: usize = 300;
    let scratch = Scratch::new();
    let (far, near) = (scratch.0.join("far"), scratch.0.join("near"));
    let (far, near) = (text(&far), text(&near));
    let serve = Telling::begin(with_few_files(&["serve", "--listen", "127.0.0.1:0", "--state", far]));
    serve.told("serving at 127.0.0.1:");
    let invitation = String::from_utf8(run(&["invite", "laptop", "--state", far]).stdout).unwrap();
    assert!(run(&["join", invitation.trim(), "--state", near, "--via", "127.0.0.1"]).status.success());
    let authorized = format!("{far}/authorized");
    let line = std::fs::read_to_string(&authorized).unwrap();
    std::fs::write(&authorized, line.replace("reach=public", "reach=public,127.0.0.1")).unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap().port();
    let words = ["proxy", "--listen", "127.0.0.1:0", "--state", near, "--via", "127.0.0.1"];
    let proxy = Telling::begin(with_few_files(&words));
    let port = proxy.told("SOCKS5 and HTTP proxy at ");
    proxy.told("connected to the far end as laptop");

    let kept: Vec<_> = (0..CONNECTIONS)
        .map(|at| {
            let mut here = TcpStream::connect(&port).unwrap();
            here.set_read_timeout(Some(LIMIT)).unwrap();
            // No password; then CONNECT to 127.0.0.1.
            here.write_all(&[&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..], &target.to_be_bytes()].concat()).unwrap();
            let mut answer = [0; 2 + 10];
            here.read_exact(&mut answer).unwrap_or_else(|error| panic!("connection {at}: {error}"));
            assert_eq!(answer[3], 0, "connection {at}: {answer:?}");
            (here, server.accept().unwrap())
        })
        .collect();
    assert_eq!(kept.len(), CONNECTIONS);
}

#[test]
fn what_cannot_be_meant_is_told_in_one_sentence() {
    let scratch = Scratch::new();
    let (far, near) = (scratch.0.join("far"), scratch.0.join("near"));
    let (far, near) = (text(&far), text(&near));
    for (words, code, expected) in [
        (&["proxy", "--listen", "127.0.0.1:0", "--state", near][..], 2, "has joined no far end yet"),
        (&["run", "--state", near, "--", "true"], 2, "has not run yet"),
        (&["run", "--state", near, "true", "--anything"], 2, "has not run yet"),
        (&["doctor", "--state", near], 2, "has joined no far end yet"),
        (&["doctor", "--server", "--state", near], 2, "has joined no far end yet"),
        (&["doctor", "--server", "192.0.2.1", "--state", near], 2, "the far end that was joined; join 192.0.2.1 first"),
        (&["top", "--end", "nosuch"], 1, "no end called 'nosuch' runs here"),
        (&["run", "--proxy", "127.0.0.1:1", "--", "true"], 1, "no `fairpath proxy` answers at 127.0.0.1:1"),
        (&["invite", "laptop", "--state", far], 1, "start `fairpath serve` first"),
        (&["revoke", "laptop", "--state", far], 2, "no device is named 'laptop'; there is none"),
        (&["join", "fp1abc", "--state", near], 2, "the ticket"),
    ] {
        let output = run(words);
        let error = error_of(&output);
        assert!(output.status.code() == Some(code) && error.contains(expected), "{words:?}: {error}");
    }
    let name = run(&["invite", "a/b", "--state", far]);
    let said = String::from_utf8_lossy(&name.stderr).into_owned();
    assert!(name.status.code() == Some(2) && said.contains("'a/b' is no name of a device"), "{said}");
}

#[test]
fn a_port_that_is_in_use_is_a_failure_that_a_service_tries_again() {
    let scratch = Scratch::new();
    let (far, near) = (scratch.0.join("far"), scratch.0.join("near"));
    let (far, near) = (text(&far), text(&near));
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let serve = Telling::start(&["serve", "--listen", "127.0.0.1:0", "--state", far]);
    serve.told("serving at 127.0.0.1:");
    let invitation = String::from_utf8(run(&["invite", "laptop", "--state", far]).stdout).unwrap();
    assert!(run(&["join", invitation.trim(), "--state", near, "--via", "127.0.0.1"]).status.success());
    let output = run(&["proxy", "--listen", &taken, "--state", near, "--via", "127.0.0.1"]);
    let error = error_of(&output);
    assert!(output.status.code() == Some(1) && error.contains("another program uses this port"), "{error}");

    // A doctor who reaches nobody says why, and fails.
    drop(serve);
    let output = run(&["doctor", "--state", near, "--via", "127.0.0.1"]);
    let (said, error) = (String::from_utf8_lossy(&output.stdout).into_owned(), error_of(&output));
    assert!(output.status.code() == Some(1) && said.contains("(refused)"), "{said}{error}");
}

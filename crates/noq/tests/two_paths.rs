//! The example as cargo builds it beside the tests: noq itself, over loopback.

use std::process::Command;

#[test]
fn noq_sends_over_two_paths_that_one_engine_sees() {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    let output = Command::new(folder.with_file_name("examples").join("two_paths")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.lines().filter(|line| line.starts_with("path ")).count(), 2, "{said}");
    assert!(said.contains("16777216 bytes came"), "{said}");
    // The first path carries what the window lets it.
    let first = said.lines().find(|line| line.starts_with("path 0")).unwrap();
    assert!(first.contains("MB delivered"), "{said}");
}

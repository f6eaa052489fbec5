//! The runner of `make test` tells of a test that fails, over a package of two test programs.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Writes a package whose library has one test that passes, and runs its tests side by side.
fn run(name: &str, integration_test: &str, options: &[&str]) -> Output {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let files = [
        // A workspace of its own, so that it is none of the packages of the one around it.
        ("Cargo.toml", format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[workspace]\n")),
        ("src/lib.rs", "#[test]\nfn it_passes() {}\n".to_owned()),
        ("tests/other.rs", integration_test.to_owned()),
    ];
    for (file, content) in files {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    Command::new(env!("CARGO_BIN_EXE_side-by-side"))
        .args(options)
        .args(["--workspace", "--offline"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_program_that_fails_fails_the_whole_and_is_shown() {
    let output = run("one_fails", "#[test]\nfn it_fails() {\n    assert_eq!(1 + 1, 3, \"the reason\");\n}\n", &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for line in [
        "Running one_fails/src/lib.rs (one_fails)",
        "test it_passes ... ok",
        "Running one_fails/tests/other.rs (other)",
        "test it_fails ... FAILED",
        "the reason",
        "test result: FAILED. 0 passed; 1 failed",
        "error: 1 test programs failed:\n    one_fails/tests/other.rs (other)\n",
    ] {
        assert!(said.contains(line), "no {line:?} in\n{said}");
    }
}

#[test]
fn a_program_that_is_killed_fails_the_whole() {
    let output = run("one_aborts", "#[test]\nfn it_aborts() {\n    std::process::abort();\n}\n", &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("one_aborts/tests/other.rs (other): signal: 6"), "{said}");
}

#[test]
fn tests_that_cannot_be_built_fail_the_whole() {
    let output = run("one_is_no_rust", "#[test]\nfn it_is_no_rust( {}\n", &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: the tests could not be built"), "{said}");
}

#[test]
fn where_all_pass_it_succeeds() {
    let output = run("all_pass", "#[test]\nfn it_passes_too() {}\n", &["--beside", "echo it was run"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("test result: ok. 1 passed; 0 failed").count(), 2, "{said}");
    assert!(said.contains("Running echo it was run\nit was run\n"), "{said}");
}

#[test]
fn a_command_beside_the_tests_that_fails_fails_the_whole() {
    let output = run("all_but_the_command_pass", "#[test]\nfn it_passes_too() {}\n", &["--beside", "echo why; exit 3"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("why\necho why; exit 3: exit status: 3\n"), "{said}");
    assert!(said.contains("error: 1 test programs failed:\n    echo why; exit 3\n"), "{said}");
}

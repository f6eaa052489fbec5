//! The package in a fresh virtual environment, tested by pytest. Without Python 3.10 or a package index it is skipped,
//! with a message.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The packages that the tests need; without Ray, which is large, its test is skipped.
const WANTED: [&str; 4] = ["numpy>=1.24", "pytest>=8", "nanoarrow>=0.6", "gymnasium>=1.0"];

/// A step that may not be possible on this machine.
fn step(command: &mut Command) -> Result<Output, String> {
    let output = command.output();
    let said = |text: &str| format!("{command:?}: {text}");
    match output {
        Ok(output) if output.status.success() => Ok(output),
        Ok(output) => Err(said(String::from_utf8_lossy(&output.stderr).trim_end())),
        Err(error) => Err(said(&error.to_string())),
    }
}

/// The Python of a virtual environment that has what the tests need; made once for each target directory.
fn environment(folder: &Path) -> Result<PathBuf, String> {
    let (python, whole) = (folder.join("bin/python"), folder.join("is-whole"));
    if std::fs::read_to_string(&whole).is_ok_and(|has| has == WANTED.join(" ")) {
        return Ok(python);
    }
    let is_new = "import sys; sys.exit(0 if sys.version_info >= (3, 10) else 'Python 3.10 or later is needed')";
    step(Command::new("python3").args(["-c", is_new]))?;
    step(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    step(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:"]).args(WANTED))?;
    std::fs::write(whole, WANTED.join(" ")).map_err(|error| error.to_string())?;
    Ok(python)
}

/// Where the compiled module is: beside this test.
fn compiled() -> PathBuf {
    let beside = std::env::current_exe().expect("a test has a file");
    beside.parent().expect("it is in a directory").join("lib_fairpath.so")
}

/// The program, where it was built with this test.
fn program() -> PathBuf {
    let beside = std::env::current_exe().expect("a test has a file");
    let program = beside.ancestors().nth(2).expect("target/debug").join("fairpath");
    if !program.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "--quiet", "-p", "fairpath-cli"]).status();
        assert!(built.is_ok_and(|status| status.success()), "cargo build -p fairpath-cli");
    }
    program
}

#[test]
fn the_package_does_what_its_users_expect() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let python = match environment(&scratch.join("python")) {
        Ok(python) => python,
        Err(reason) => {
            eprintln!("the Python package: skipped, {reason}");
            return;
        }
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = scratch.join("package/fairpath");
    std::fs::create_dir_all(&package).expect("a directory can be made");
    for file in std::fs::read_dir(here.join("python/fairpath")).expect("the package is there") {
        let file = file.expect("it can be read").path();
        if file.is_file() {
            std::fs::copy(&file, package.join(file.file_name().expect("a name"))).expect("it can be copied");
        }
    }
    std::fs::copy(compiled(), package.join("_fairpath.abi3.so")).expect("the module was built");
    let ran = Command::new(&python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(here.join("tests"))
        .env("PYTHONPATH", scratch.join("package"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PATH", format!("{}:/usr/bin:/bin", python.parent().expect("bin").display()))
        .env("FAIRPATH", program())
        .env("FAIRPATH_SCENARIOS", here.join("../../scenarios"))
        .status();
    assert!(ran.is_ok_and(|status| status.success()), "pytest failed; what it said stands above");
}

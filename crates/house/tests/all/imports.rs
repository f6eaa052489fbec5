//! No circle of imports, in any crate: what a file is can be read without those that use it.

use fairpath_house::imports::Modules;
use fairpath_house::repository;

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    for folder in repository::crate_folders() {
        let src = folder.join("src");
        let below = format!("{}/", repository::relative(&src));
        let files = repository::rust_files(&src).into_iter();
        let files = files.map(|file| (repository::relative(&file).replacen(&below, "", 1), repository::read(&file)));
        let circles = Modules::new(&files.collect::<Vec<_>>()).circles();
        found.extend(circles.into_iter().map(|circle| format!("{}: {circle}", repository::relative(&folder))));
    }
    assert!(found.is_empty(), "{} circles:\n{}", found.len(), found.join("\n"));
}

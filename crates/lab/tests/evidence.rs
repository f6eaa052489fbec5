//! The pages in `docs/evidence` are made of the reports beside them, and of nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use fairpath_lab::write_pages;

fn files(folder: &Path) -> Vec<PathBuf> {
    let inside = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    inside.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_page_of_evidence_is_made_of_its_report() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evidence");
    let made = std::env::temp_dir().join(format!("fairpath-pages-{}", std::process::id()));
    fs::create_dir_all(&made).unwrap();
    let to = if std::env::var_os("UPDATE_DOCS").is_some() { &kept } else { &made };
    let pages = write_pages(&kept, to).unwrap();
    assert_eq!(pages.unreadable, [""; 0], "reports of another version: run their experiments again");
    let is_page = |path: &PathBuf| path.ends_with("README.md");
    for page in files(&kept).into_iter().filter(is_page) {
        let name = page.strip_prefix(&kept).unwrap();
        let now = fs::read_to_string(to.join(name)).unwrap_or_default();
        let written = fs::read_to_string(&page).unwrap();
        assert!(written == now, "docs/evidence/{} is not what its report says: run with UPDATE_DOCS=1", name.display());
    }
    for file in files(&kept).into_iter().filter(|path| !is_page(path) && !path.ends_with("report.json")) {
        let page = fs::read_to_string(file.with_file_name("README.md")).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(page.contains(&format!("({name})")), "{} stands on no page", file.display());
    }
    assert_eq!(files(to).into_iter().filter(is_page).count(), files(&kept).into_iter().filter(is_page).count());
    let _ = fs::remove_dir_all(&made);
}

//! Every case that tamis and the kernel once differed on, or that is worth keeping, still goes as the
//! kernel decided. Needs neither root nor a kernel.

use std::fs;
use std::path::Path;

use lab::case::Case;

#[test]
fn every_case_goes_as_in_the_kernel() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kernel");
    let mut replayed = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let case = Case::parse(&text).unwrap_or_else(|| panic!("{} is no case", path.display()));
        assert_eq!(case.text(), text, "{} is not in its own form", path.display());
        if let Err(what) = case.replay() {
            wrong.push(format!("{}: {what}", path.display()));
        }
        replayed += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(replayed > 0, "no cases found");
}

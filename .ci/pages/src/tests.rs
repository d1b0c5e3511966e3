//! Small trees of pages, each with one thing wrong.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;

use crate::check::Pages;

/// What is wrong with a tree of pages; README and the book's contents are there unless they are given.
fn wrong(pages: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in
        [("README.md", "# tamis\n"), ("docs/SUMMARY.md", "# Summary\n")].iter().chain(pages)
    {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Pages::read(folder.path()).unwrap().wrong()
}

const SUMMARY: (&str, &str) = ("docs/SUMMARY.md", "- [Start](start.md)\n- [Why](why.md)\n");

#[test]
fn links_that_lead_somewhere_are_nothing_to_tell() {
    let start = "# Start here, `now`\n\n## Twice\n\n## Twice\n\n[b](why.md#the-way-2) [c](#start-here-now)\n\
                 [d](#twice-1) [e](https://example.com/nothing.md)\n\n| a | b |\n|---|---|\n| [f](why.md) | x |\n";
    let pages = [("docs/start.md", start), ("docs/why.md", "## The way, 2\n"), SUMMARY];
    assert_eq!(wrong(&pages), Vec::<String>::new());
    assert_eq!(
        wrong(&[("README.md", "[docs](docs/) [summary](./docs/SUMMARY.md)\n")]),
        Vec::<String>::new()
    );
}

#[test]
fn a_link_to_nothing_is_told_with_its_line() {
    let readme = "# tamis\n\n```text\n[not](a-link.md)\n```\n\nand [gone](docs/gone.md)\n";
    let expected = "README.md:7: docs/gone.md: expected a file or folder that is there";
    assert_eq!(wrong(&[("README.md", readme)]), [expected]);
    let expected = "README.md:1: ../up.md: expected a path in the repository";
    assert_eq!(wrong(&[("README.md", "[up](../up.md)\n")]), [expected]);
    let expected = "README.md:1: none.png: expected a file or folder that is there";
    assert_eq!(wrong(&[("README.md", "![picture](none.png)\n")]), [expected]);
}

#[test]
fn an_anchor_that_no_heading_makes_is_told() {
    let expected = "README.md:2: #two: expected an anchor that a heading there makes";
    assert_eq!(wrong(&[("README.md", "# One\n[two](#two)\n")]), [expected]);
    let expected =
        "README.md:1: docs/SUMMARY.md#two: expected an anchor that a heading there makes";
    assert_eq!(wrong(&[("README.md", "[two](docs/SUMMARY.md#two)\n")]), [expected]);
}

#[test]
fn the_book_has_every_page_and_stands_alone() {
    let expected = "docs/why.md: expected a line in docs/SUMMARY.md";
    assert_eq!(wrong(&[("docs/why.md", "# Why\n")]), [expected]);
    let out = "[up](../README.md)\n[folder](../docs)\n";
    let stands = "expected a file of the book, as the book stands alone";
    let expected = [
        format!("docs/start.md:1: ../README.md: {stands}"),
        format!("docs/start.md:2: ../docs: {stands}"),
    ];
    assert_eq!(wrong(&[("docs/start.md", out), ("docs/why.md", ""), SUMMARY]), expected);
}

#[test]
fn a_long_readme_is_told() {
    let expected = "README.md: expected at most 150 lines, found 151";
    assert_eq!(wrong(&[("README.md", &"a line\n".repeat(151))]), [expected]);
    assert_eq!(wrong(&[("README.md", &"a line\n".repeat(150))]), Vec::<String>::new());
}

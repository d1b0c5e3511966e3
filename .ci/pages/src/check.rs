//! What is wrong with the pages of a folder.
//!
//! A link that names no scheme leads to a file that is there, and its anchor to a heading of that page. A page of the book
//! (`docs/`) is named in `docs/SUMMARY.md`, and its links stay in the book and name pages, for the book goes elsewhere
//! without the repository. Links with a scheme are not followed: nothing here needs a network.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use crate::page::{Link, Page};

/// The book's source.
const BOOK: &str = "docs";
/// README's lines, at most: it is for those who have three minutes.
const README_LINES: usize = 150;

/// All pages below a folder, by their path from there.
pub(crate) struct Pages {
    root: PathBuf,
    pages: BTreeMap<PathBuf, Page>,
    readme_lines: usize,
}

impl Pages {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let (mut pages, mut readme_lines) = (BTreeMap::new(), 0);
        for path in markdown(root, Path::new(""))? {
            let text =
                fs::read_to_string(root.join(&path)).with_context(|| path.display().to_string())?;
            if path == Path::new("README.md") {
                readme_lines = text.lines().count();
            }
            pages.insert(path, Page::read(&text));
        }
        Ok(Self { root: root.to_owned(), pages, readme_lines })
    }

    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// A line for each thing that is wrong, where and what was expected.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let mut wrong = self.missing_from_the_book();
        for (path, page) in &self.pages {
            for link in &page.links {
                if let Err(what) = self.follow(path, link) {
                    wrong.push(format!("{}:{}: {}: {what}", path.display(), link.line, link.to));
                }
            }
        }
        if self.readme_lines > README_LINES {
            let lines = self.readme_lines;
            wrong.push(format!("README.md: expected at most {README_LINES} lines, found {lines}"));
        }
        wrong
    }

    fn follow(&self, from: &Path, link: &Link) -> Result<(), String> {
        if link.to.contains("://") || link.to.starts_with("mailto:") {
            return Ok(());
        }
        let (file, anchor) = link.to.split_once('#').unwrap_or((&link.to, ""));
        let to = match file {
            "" => from.to_owned(),
            file => resolve(from, file).ok_or("expected a path in the repository")?,
        };
        let place = self.root.join(&to);
        if !place.exists() {
            return Err("expected a file or folder that is there".to_owned());
        }
        if from.starts_with(BOOK) && (!to.starts_with(BOOK) || place.is_dir()) {
            return Err("expected a file of the book, as the book stands alone".to_owned());
        }
        match self.pages.get(&to) {
            _ if anchor.is_empty() => Ok(()),
            Some(page) if page.anchors.contains(anchor) => Ok(()),
            _ => Err("expected an anchor that a heading there makes".to_owned()),
        }
    }

    fn missing_from_the_book(&self) -> Vec<String> {
        let summary = Path::new(BOOK).join("SUMMARY.md");
        let Some(page) = self.pages.get(&summary) else {
            return vec![format!("{}: expected the book's contents", summary.display())];
        };
        let named: HashSet<_> =
            page.links.iter().filter_map(|link| resolve(&summary, &link.to)).collect();
        let chapters = self.pages.keys().filter(|path| path.starts_with(BOOK) && **path != summary);
        chapters
            .filter(|path| !named.contains(*path))
            .map(|path| format!("{}: expected a line in {}", path.display(), summary.display()))
            .collect()
    }
}

/// The path from the root that a link of a page names; none if that is outside.
fn resolve(from: &Path, to: &str) -> Option<PathBuf> {
    let mut path = from.parent()?.to_owned();
    for part in Path::new(to).components() {
        match part {
            Component::ParentDir => path.pop().then_some(())?,
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// The pages below a folder, without what is built, what npm has fetched and what is hidden.
fn markdown(root: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(folder)).with_context(|| folder.display().to_string())? {
        let (entry, name) = entry.map(|entry| (entry.file_type(), entry.file_name()))?;
        let path = folder.join(&name);
        if entry?.is_dir() {
            let is_others = name == "target" || name == "node_modules";
            if !is_others && !name.as_encoded_bytes().starts_with(b".") {
                found.extend(markdown(root, &path)?);
            }
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    Ok(found)
}

//! Reads a crate's modules from its files: the tree of `mod` items, without those for tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use syn::{Attribute, Item};

/// A file of a crate.
pub(crate) struct Module {
    /// As Rust names it: `rules::ext::tcp`; the root is the crate's folder's name alone.
    pub(crate) path: String,
    pub(crate) file: PathBuf,
    /// Its ancestors' places, the nearest first; empty for a root.
    pub(crate) ancestors: Vec<usize>,
    /// Its children: name and place.
    pub(crate) children: Vec<(String, usize)>,
    pub(crate) items: Vec<Item>,
}

/// The folders below this one that hold a crate, at any depth, in order.
pub(crate) fn crates(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() {
            found.push(path.clone());
        }
        if path.is_dir() && !path.ends_with("src") && !path.ends_with("tests") {
            found.extend(crates(&path)?);
        }
    }
    found.sort();
    Ok(found)
}

/// The modules of the crate in this folder: those of its library, or of its program where it has none, and of
/// each program in `src/bin`.
pub(crate) fn read(folder: &Path) -> Result<Vec<Module>> {
    let name = folder.file_name().context("a folder has a name")?.to_string_lossy().into_owned();
    let src = folder.join("src");
    let mut modules = Vec::new();
    let mut roots = Vec::new();
    for root in ["lib.rs", "main.rs"] {
        roots.push((name.clone(), src.join(root)));
    }
    if let Ok(entries) = fs::read_dir(src.join("bin")) {
        for entry in entries {
            let path = entry?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            roots.push((stem, if path.is_dir() { path.join("main.rs") } else { path }));
        }
    }
    for (name, file) in roots.into_iter().filter(|(_, file)| file.is_file()) {
        let below = file.parent().context("a file lies in a folder")?.to_path_buf();
        add(&mut modules, name, file, &below, Vec::new())?;
    }
    if modules.is_empty() {
        bail!("{}: neither lib.rs nor main.rs", src.display());
    }
    Ok(modules)
}

/// Adds the module of this file and all below it, whose files lie in `below`. Gives its place.
fn add(
    modules: &mut Vec<Module>,
    path: String,
    file: PathBuf,
    below: &Path,
    ancestors: Vec<usize>,
) -> Result<usize> {
    let text = fs::read_to_string(&file).with_context(|| format!("{}", file.display()))?;
    let items = syn::parse_file(&text).with_context(|| format!("{}", file.display()))?.items;
    let items: Vec<Item> = items.into_iter().filter(|item| !for_tests(attributes(item))).collect();
    let files: Vec<String> = items.iter().filter_map(file_of_its_own).collect();
    let place = modules.len();
    modules.push(Module { path, file, ancestors, children: Vec::new(), items });
    for name in files {
        let inner = below.join(&name);
        let flat = below.join(format!("{name}.rs"));
        let file = if flat.is_file() { flat } else { inner.join("mod.rs") };
        let path = format!("{}::{name}", modules[place].path);
        let ancestors = [&[place], modules[place].ancestors.as_slice()].concat();
        let child = add(modules, path, file, &inner, ancestors)?;
        modules[place].children.push((name, child));
    }
    Ok(place)
}

/// The name of a module whose file lies where its name says; another one's is a file of tests, which they share.
fn file_of_its_own(item: &Item) -> Option<String> {
    let is_elsewhere = attributes(item).iter().any(|attribute| attribute.path().is_ident("path"));
    match item {
        Item::Mod(module) if module.content.is_none() && !is_elsewhere => {
            Some(module.ident.to_string())
        }
        _ => None,
    }
}

/// Whether an item is there for tests, or for the fuzzer and for tests, alone.
pub(crate) fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let is_test = attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"));
        let words = attribute.meta.require_list().map(|list| list.tokens.to_string());
        is_test || words.is_ok_and(|words| words.replace(' ', "") == "any(test,fuzzing)")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        _ => &[],
    }
}

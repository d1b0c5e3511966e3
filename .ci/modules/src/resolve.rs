//! Which module a path in another one names, through every `use` on the way.

use std::collections::{BTreeMap, HashMap, HashSet};

use proc_macro2::Span;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, Ident, Item, ItemMod, ItemUse, Macro, Token, UseTree};

use crate::source::{Module, for_tests};

/// A module uses what another one defines.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The line of the first use, from 1.
    line: usize,
    /// What is used.
    name: String,
}

impl Edge {
    /// Where the first use is, and of what.
    pub(crate) fn at(&self, modules: &[Module]) -> String {
        format!("({} at {}:{})", self.name, modules[self.from].file.display(), self.line)
    }
}

/// The edges between modules, the first use of each.
pub(crate) fn edges(modules: &[Module]) -> Vec<Edge> {
    let names: Vec<Names> = modules.iter().map(|module| Names::of(&module.items)).collect();
    let tree = Tree { modules, names };
    let mut edges = BTreeMap::new();
    for (from, module) in modules.iter().enumerate() {
        let mut paths = Paths::default();
        module.items.iter().for_each(|item| paths.visit_item(item));
        for (path, span) in &paths.found {
            let Some(to) = tree.resolve(from, path, &mut HashSet::new()) else { continue };
            if to == from {
                continue;
            }
            let name = path.last().cloned().unwrap_or_default();
            edges.entry((from, to)).or_insert(Edge { from, to, line: span.start().line, name });
        }
    }
    edges.into_values().collect()
}

/// The names that a module's own text gives a meaning to.
#[derive(Debug, Default)]
struct Names {
    defined: HashSet<String>,
    /// By `use`: a name and what it stands for.
    used: HashMap<String, Vec<String>>,
    /// By `use …::*`.
    globs: Vec<Vec<String>>,
}

impl Names {
    fn of(items: &[Item]) -> Self {
        let mut names = Names::default();
        for item in items {
            match item {
                Item::Use(item) => {
                    flatten(&item.tree, &mut Vec::new(), &mut |path, name| match name {
                        Some(name) => drop(names.used.insert(name.to_string(), path)),
                        None => names.globs.push(path),
                    })
                }
                _ => names.defined.extend(name_of(item)),
            }
        }
        names
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Mod(item) if item.content.is_some() => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Calls `found` with each path of a `use` and the name it gets; without a name for a glob.
fn flatten(
    tree: &UseTree,
    above: &mut Vec<String>,
    found: &mut impl FnMut(Vec<String>, Option<&Ident>),
) {
    match tree {
        UseTree::Path(path) => {
            above.push(path.ident.to_string());
            flatten(&path.tree, above, found);
            above.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            let last = above.last().map(|last| Ident::new(last, name.ident.span()));
            found(above.clone(), last.as_ref());
        }
        UseTree::Name(name) => found(with(above, &name.ident), Some(&name.ident)),
        UseTree::Rename(name) if name.ident == "self" => found(above.clone(), Some(&name.rename)),
        UseTree::Rename(name) => found(with(above, &name.ident), Some(&name.rename)),
        UseTree::Glob(_) => found(above.clone(), None),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, above, found)),
    }
}

fn with(above: &[String], last: &Ident) -> Vec<String> {
    above.iter().cloned().chain([last.to_string()]).collect()
}

struct Tree<'m> {
    modules: &'m [Module],
    names: Vec<Names>,
}

impl Tree<'_> {
    /// The module that defines what this path in module `from` names; none outside the crate.
    fn resolve(
        &self,
        from: usize,
        path: &[String],
        under_way: &mut HashSet<(usize, String)>,
    ) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let ancestors = &self.modules[from].ancestors;
        match first.as_str() {
            "crate" => self.descend(*ancestors.last().unwrap_or(&from), rest, under_way),
            "self" => self.descend(from, rest, under_way),
            "super" => match rest.first().map(String::as_str) {
                Some("super") => self.resolve(*ancestors.first()?, rest, under_way),
                _ => self.descend(*ancestors.first()?, rest, under_way),
            },
            _ => self.named(from, first, rest, under_way),
        }
    }

    fn descend(
        &self,
        at: usize,
        path: &[String],
        under_way: &mut HashSet<(usize, String)>,
    ) -> Option<usize> {
        match path.split_first() {
            None => Some(at),
            // What is not found is a method, a variant, or made by a macro: the module's own.
            Some((first, rest)) => self.named(at, first, rest, under_way).or(Some(at)),
        }
    }

    /// What `name`, and `rest` within it, stands for in module `at`.
    fn named(
        &self,
        at: usize,
        name: &str,
        rest: &[String],
        under_way: &mut HashSet<(usize, String)>,
    ) -> Option<usize> {
        if let Some((_, child)) = self.modules[at].children.iter().find(|(child, _)| child == name)
        {
            return self.descend(*child, rest, under_way);
        }
        let names = &self.names[at];
        if names.defined.contains(name) {
            return Some(at);
        }
        if !under_way.insert((at, name.to_owned())) {
            return None;
        }
        if let Some(path) = names.used.get(name) {
            let path: Vec<String> = path.iter().chain(rest).cloned().collect();
            return self.resolve(at, &path, under_way);
        }
        names.globs.iter().find_map(|glob| {
            let module = self.resolve(at, glob, under_way)?;
            self.named(module, name, rest, under_way)
        })
    }
}

/// All paths of a module's text, with where they are.
#[derive(Default)]
struct Paths {
    found: Vec<(Vec<String>, Span)>,
    /// How many modules within the file the visitor is in.
    depth: usize,
}

impl Paths {
    /// Adds a path as the file has it: what a module within the file calls `super` may be the file itself.
    fn add(&mut self, path: Vec<String>, span: Span) {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let within = supers.min(self.depth);
        let own = (supers > 0 && within == supers).then(|| "self".to_owned());
        self.found.push((own.into_iter().chain(path.into_iter().skip(within)).collect(), span));
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if !for_tests(&item.attrs) {
            self.depth += 1;
            visit::visit_item_mod(self, item);
            self.depth -= 1;
        }
    }

    /// `pub use` hands a name on and uses nothing itself.
    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if matches!(item.vis, syn::Visibility::Inherited) {
            let span = item.span();
            flatten(&item.tree, &mut Vec::new(), &mut |path, _| self.add(path, span));
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string());
        self.add(segments.collect(), path.span());
        visit::visit_path(self, path);
    }

    /// A module that may see an item is not used by it.
    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}

    /// Arguments of most macros are expressions.
    fn visit_macro(&mut self, item: &'a Macro) {
        let arguments = item.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        let Ok(arguments) = arguments else { return };
        // They live shorter than the text: walked by a visitor of their own.
        let mut inner = Paths { depth: self.depth, ..Paths::default() };
        arguments.iter().for_each(|expression| inner.visit_expr(expression));
        self.found.append(&mut inner.found);
    }
}

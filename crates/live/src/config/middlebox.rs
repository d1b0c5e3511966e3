//! `[middlebox]`: where middleboxes see frames, and what becomes of frames that they fail over.

use toml::de::{DeTable, DeValue};

use super::{At, Named, Privileges};
use dataplane::keys::{Section, Value, Wrong, found, string};

/// Where a middlebox sees frames, and what becomes of frames that it fails over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slot {
    /// Before or after the rules.
    pub side: Side,
    /// What becomes of frames that the middlebox fails over.
    pub on_error: OnError,
}

/// Frames of the longest ring.
const MOST_FRAMES: u64 = 1 << 20;

/// On which side of the rules a middlebox sees frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Side {
    /// Frames after the rules, as the rules leave them.
    #[default]
    After,
    /// Frames before the rules, as they were received.
    Before,
}

/// What becomes of a frame that a middlebox fails over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// The frame is dropped.
    #[default]
    Drop,
    /// The frame goes on.
    Pass,
}

/// The configuration of middleboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MiddleboxSettings {
    /// Where middleboxes see frames.
    pub slot: Slot,
    /// Frames that may be at a worker's middlebox while the worker goes on; 0 where it waits for its verdicts.
    pub ring: usize,
    /// The handler in Java; without it the program that opens the run has the middleboxes.
    pub java: Option<JavaSettings>,
    /// Where the configuration says so.
    pub at: At,
}

/// A handler in Java, for which tamis starts a JVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaSettings {
    /// The class path: jars and folders of classes.
    pub jar: Vec<Named>,
    /// The full name of a class that implements `dev.tamis.Handler`.
    pub class: String,
    /// The folder of a JDK or JRE, or its `libjvm`; where it is not named, it is searched for.
    pub jvm: Option<Named>,
    /// Options of the JVM.
    pub options: Vec<String>,
    /// Where the configuration says that it is in Java.
    pub at: At,
    /// Where it names the class.
    pub class_at: At,
    /// Where it has the options.
    pub options_at: At,
}

impl JavaSettings {
    /// The class path, as a JVM takes it.
    #[must_use]
    pub fn class_path(&self) -> String {
        let mut path = String::new();
        for entry in &self.jar {
            if !path.is_empty() {
                path.push(CLASS_PATH_SEPARATOR);
            }
            path.push_str(&entry.path.to_string_lossy());
        }
        path
    }
}

const KEYS: [&str; 4] = ["kind", "place", "on_error", "ring"];
const OF_JAVA: [&str; 4] = ["jar", "class", "jvm", "options"];

/// Reads the section, if there is one. `at` gives the place of an offset, `named` the file that a value names.
pub(super) fn middlebox<'t>(
    top: &DeTable<'t>,
    at: impl Fn(usize) -> At,
    named: impl Fn(&Value<'t>) -> Result<Named, Wrong>,
) -> Result<Option<MiddleboxSettings>, Wrong> {
    let Some(value) = top.get("middlebox") else { return Ok(None) };
    // The kind says which keys there are, so it is looked at first.
    let kind = Section::any("[middlebox]", value)?.choice("kind", &[("java", ())], &[])?;
    let of_kind = kind.map_or(&[][..], |()| &OF_JAVA);
    let keys: Vec<&str> = KEYS.iter().chain(of_kind).copied().collect();
    let section = Section::new("[middlebox]", value, &keys, &[])?;
    let sides = [("after", Side::After), ("before", Side::Before)];
    let errors = [("drop", OnError::Drop), ("pass", OnError::Pass)];
    let slot = Slot {
        side: section.choice("place", &sides, &[])?.unwrap_or_default(),
        on_error: section.choice("on_error", &errors, &[])?.unwrap_or_default(),
    };
    let ring = section.number("ring", MOST_FRAMES)?.unwrap_or_default() as usize;
    let java = kind.map(|()| java(&section, &at, named)).transpose()?;
    Ok(Some(MiddleboxSettings { slot, ring, java, at: at(value.span().start) }))
}

/// Refuses to drop privileges that a JVM may need.
pub(super) fn has_its_privileges(
    top: &DeTable<'_>,
    privileges: Privileges,
    middlebox: Option<&MiddleboxSettings>,
) -> Result<(), Wrong> {
    let is_java = middlebox.is_some_and(|set| set.java.is_some());
    let drop = top.get("privileges").and_then(|section| section.get_ref().as_table()?.get("drop"));
    match (privileges, drop) {
        (Privileges::Required, Some(drop)) if is_java => {
            let what = "expected \"auto\" or \"off\": what files and system calls a JVM needs is \
                        not known, so a run with a middlebox in Java cannot give them up";
            Err((drop.span(), what.to_owned()))
        }
        _ => Ok(()),
    }
}

fn java<'t>(
    section: &Section<'_, 't>,
    at: impl Fn(usize) -> At,
    named: impl Fn(&Value<'t>) -> Result<Named, Wrong>,
) -> Result<JavaSettings, Wrong> {
    let place = |key| section.get(key).map_or(section.span.0, |value| value.span().start);
    let class = section.need("class")?;
    let name = match string(class)? {
        "" => return Err((class.span(), "expected the name of a class, found \"\"".to_owned())),
        name => name.to_owned(),
    };
    let options = section.get("options").map(|options| match options.get_ref() {
        DeValue::Array(options) => options.iter().map(option).collect(),
        _ => Err(found(options, "a list of strings")),
    });
    Ok(JavaSettings {
        jar: class_path(section.need("jar")?, &named)?,
        class: name,
        jvm: section.get("jvm").map(named).transpose()?,
        options: options.transpose()?.unwrap_or_default(),
        at: at(place("kind")),
        class_at: at(place("class")),
        options_at: at(place("options")),
    })
}

/// A file, or several.
fn class_path<'t>(
    value: &Value<'t>,
    named: impl Fn(&Value<'t>) -> Result<Named, Wrong>,
) -> Result<Vec<Named>, Wrong> {
    let files = match value.get_ref() {
        DeValue::Array(files) if files.is_empty() => {
            return Err((value.span(), "expected at least one file".to_owned()));
        }
        DeValue::Array(files) => files.iter().collect(),
        _ => vec![value],
    };
    let entry = |value: &Value<'t>| {
        let named = named(value)?;
        match named.path.to_str() {
            Some(path) if !path.contains(CLASS_PATH_SEPARATOR) => Ok(named),
            _ => {
                let what = format!("expected a path in UTF-8 without {CLASS_PATH_SEPARATOR}");
                Err((value.span(), format!("{what}, which separates those of a class path")))
            }
        }
    };
    files.into_iter().map(entry).collect()
}

/// The separator of a class path, which no file in it may have in its name.
const CLASS_PATH_SEPARATOR: char = ':';

fn option(value: &Value<'_>) -> Result<String, Wrong> {
    match string(value)? {
        option if option.starts_with('-') && !option.contains('\0') => Ok(option.to_owned()),
        _ => Err((value.span(), "expected an option of the JVM, which begins with -".to_owned())),
    }
}

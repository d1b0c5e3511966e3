//! `--split`: one pcapng for each verdict, and one more for each rule, policy or reason that drops or
//! rejects: `drop.pcapng`, `drop.L211.pcapng`, `drop.policy-filter-FORWARD.pcapng`, `drop.ttl.pcapng`.
//!
//! Contract: frames as captured, with the interfaces and link types of their captures. However many files
//! there are, at most [`MOST_OPEN`] are open at once. They take their names all at once, at the end.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use dataplane::FinalVerdict;
use packet::visible;
use pktio::pcap_file::NgWriter;
use rules::eval::By;
use rules::model::Family;

use crate::annotate::Interfaces;
use crate::decider::Decider;
use crate::error::Error;
use crate::evaluated::Evaluated;
use crate::room::{Room, Within};
use crate::target::Pending;

/// Files open at once: far below what any system allows one process.
const MOST_OPEN: usize = 64;
/// The words that names begin with: the verdicts' words.
const VERDICTS: [&str; 5] = ["accept", "drop", "reject", "unknown", "skip"];

/// Whether `--split` may write a file of this name.
#[must_use]
pub fn may_write(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let mut parts = name.split('.');
    parts.next().is_some_and(|first| VERDICTS.contains(&first))
        && parts.next_back() == Some("pcapng")
}

/// The directory of captures.
pub(crate) struct Split {
    dir: PathBuf,
    room: Room,
    /// The family whose rules need not be named.
    first: Option<Family>,
    outputs: Vec<Output>,
    /// Output of each verdict, and of each decider that drops or rejects.
    by_verdict: HashMap<&'static str, usize>,
    by_decider: HashMap<(&'static str, Decider), usize>,
    by_name: HashMap<String, usize>,
    open: usize,
    written: u64,
}

struct Output {
    path: PathBuf,
    writer: Option<NgWriter<Within<File>>>,
    interfaces: Interfaces,
    /// The file that is written, once there is one.
    pending: Option<Pending>,
    /// The count of frames written when this file was last.
    used: u64,
}

impl Split {
    /// Makes the directory if it is not there. `first` is the family of the first rules.
    pub(crate) fn new(dir: &Path, first: Option<Family>, room: Room) -> Result<Self, Error> {
        if dir.is_file() {
            return Err(failed(dir)(io::ErrorKind::NotADirectory.into()));
        }
        std::fs::create_dir_all(dir).map_err(failed(dir))?;
        Ok(Self {
            dir: dir.to_owned(),
            room,
            first,
            outputs: Vec::new(),
            by_verdict: HashMap::new(),
            by_decider: HashMap::new(),
            by_name: HashMap::new(),
            open: 0,
            written: 0,
        })
    }

    /// Writes a frame to the file of its verdict and, if it was dropped, to that of the reason.
    pub(crate) fn write(&mut self, evaluated: &Evaluated<'_>) -> Result<(), Error> {
        let verdict = evaluated.end.verdict.word();
        let index = match self.by_verdict.get(verdict) {
            Some(index) => *index,
            None => {
                let index = self.named(verdict.to_owned());
                *self.by_verdict.entry(verdict).or_insert(index)
            }
        };
        self.append(index, evaluated)?;
        if !matches!(evaluated.end.verdict, FinalVerdict::Drop(_) | FinalVerdict::Reject(_)) {
            return Ok(());
        }
        let key = (verdict, evaluated.decider);
        let index = match self.by_decider.get(&key) {
            Some(index) => *index,
            None => {
                let index = self.named(format!("{verdict}.{}", self.reason(evaluated)));
                *self.by_decider.entry(key).or_insert(index)
            }
        };
        self.append(index, evaluated)
    }

    /// Ends every file, and gives it its name.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        (0..self.outputs.len()).try_for_each(|index| self.close(index))?;
        self.outputs.into_iter().try_for_each(|Output { path, pending, .. }| {
            pending.map_or(Ok(()), Pending::keep).map_err(failed(&path))
        })
    }

    /// The decider as part of a file name. Rules of one line share it: `-s a,b` is several rules.
    fn reason(&self, evaluated: &Evaluated<'_>) -> String {
        let (family, by) = match evaluated.decider {
            Decider::Rules(family, by) => (family, by),
            Decider::Either(..) => return "either".to_owned(),
            Decider::Stack(_) => return "stack".to_owned(),
            _ => return "ttl".to_owned(),
        };
        let named = if self.first == Some(family) { "" } else { family.name() };
        let dot = if named.is_empty() { "" } else { "." };
        let place = evaluated.place;
        let line = place.line.unwrap_or(0);
        match by {
            By::Rule(_) => format!("{named}{dot}L{line}"),
            By::HotDrop(_) => format!("{named}{dot}hotdrop.L{line}"),
            By::Policy { .. } => {
                let (table, chain) = (place.table.unwrap_or("?"), place.chain.unwrap_or("?"));
                format!("{named}{dot}policy-{table}-{}", part_of_name(chain))
            }
        }
    }

    /// The output of this name, which may be new.
    fn named(&mut self, name: String) -> usize {
        if let Some(index) = self.by_name.get(&name) {
            return *index;
        }
        let path = self.dir.join(format!("{name}.pcapng"));
        let interfaces = Interfaces::default();
        self.outputs.push(Output { path, writer: None, interfaces, pending: None, used: 0 });
        self.by_name.insert(name, self.outputs.len() - 1);
        self.outputs.len() - 1
    }

    fn append(&mut self, index: usize, evaluated: &Evaluated<'_>) -> Result<(), Error> {
        self.written += 1;
        if self.outputs[index].writer.is_none() {
            self.make_room()?;
            self.open += 1;
        }
        let output = &mut self.outputs[index];
        output.used = self.written;
        output.append(evaluated, &self.room).map_err(failed(&output.path))
    }

    /// Closes the least recently used file, if too many are open.
    fn make_room(&mut self) -> Result<(), Error> {
        if self.open < MOST_OPEN {
            return Ok(());
        }
        let open = self.outputs.iter().enumerate().filter(|(_, output)| output.writer.is_some());
        match open.min_by_key(|(_, output)| output.used).map(|(index, _)| index) {
            Some(oldest) => self.close(oldest),
            None => Ok(()),
        }
    }

    fn close(&mut self, index: usize) -> Result<(), Error> {
        let output = &mut self.outputs[index];
        let Some(writer) = output.writer.take() else { return Ok(()) };
        self.open -= 1;
        writer.finish().map_err(failed(&output.path))?;
        Ok(())
    }
}

impl Output {
    fn append(&mut self, evaluated: &Evaluated<'_>, room: &Room) -> io::Result<()> {
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.open(room)?,
        };
        let number = self.interfaces.number(evaluated, &mut writer)?;
        writer.write(number, evaluated.as_captured(), None)?;
        self.writer = Some(writer);
        Ok(())
    }

    fn open(&mut self, room: &Room) -> io::Result<NgWriter<Within<File>>> {
        if let Some(pending) = &self.pending {
            let file = OpenOptions::new().append(true).open(&pending.path)?;
            return Ok(NgWriter::resume(room.within(file), self.interfaces.len()));
        }
        let (pending, file) = Pending::beside(&self.path)?;
        self.pending = Some(pending);
        NgWriter::new(room.within(file))
    }
}

/// A chain's name as part of a file's: ebtables takes a `/` in it, which would lead elsewhere.
fn part_of_name(chain: &str) -> String {
    let mut part = String::with_capacity(chain.len());
    for c in chain.chars() {
        if c == '/' || c == '%' || visible::steers(c) {
            let mut bytes = [0; 4];
            part.extend(c.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")));
        } else {
            part.push(c);
        }
    }
    part
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::File { file: path.display().to_string(), source }
}

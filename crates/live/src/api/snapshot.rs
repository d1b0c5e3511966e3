//! What a run evaluates packets by now, as the files of a host's folder, which `tamis replay` and `tamis why` take.
//!
//! Contract: only the requesting client waits. Rules come with their counters; what cannot be listed is left out, and
//! said.

use std::collections::BTreeMap;

use rules::ipset::SavedSet;

use crate::answers::Snapshot;
use crate::api::parts::Parts;
use crate::forward::clock::now;
use crate::rules::counters::saved_by_family;
use dataplane::bans_text;

/// What a run has for a file.
enum Content {
    /// The run has nothing for the file.
    Nothing,
    /// The run has something, and cannot list it.
    Unlisted,
    /// The text of the file.
    Text(String),
}

/// A file of the folder, and how its text is found.
type File = (&'static str, fn(&Parts) -> Content);

/// The files besides rules and wires, whose contents may not be listable.
const LISTED: [File; 3] =
    [("ipset.save", Parts::sets), ("bans.txt", Parts::bans), ("conntrack.txt", Parts::tracked)];

impl Parts {
    /// The answer to `snapshot`.
    ///
    /// # Errors
    /// Counters cannot be read now.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, String> {
        let snapshot = self.rules.published().snapshot().map_err(|error| error.to_string())?;
        let mut files: BTreeMap<String, String> = saved_by_family(&snapshot)
            .map(|(family, text)| (format!("{}.save", family.tool()), text))
            .collect();
        files.insert("wires.txt".to_owned(), self.watchers.wires());
        let mut left_out = Vec::new();
        for (name, list) in LISTED {
            match list(self) {
                Content::Nothing => {}
                Content::Unlisted => left_out.push(name.to_owned()),
                Content::Text(text) => drop(files.insert(name.to_owned(), text)),
            }
        }
        Ok(Snapshot { program: snapshot.program.number(), files, left_out })
    }

    /// The sets, as `ipset save` prints them.
    fn sets(&self) -> Content {
        let shared = self.rules.published().shared();
        let Some(sets) = shared.sets() else { return Content::Nothing };
        let saved = sets.save(None, usize::MAX, now());
        Content::Text(saved.iter().map(SavedSet::text).collect())
    }

    /// The access list, as a file of bans.
    fn bans(&self) -> Content {
        let changes = self.rules.access_list().changes();
        if changes.is_empty() {
            return Content::Nothing;
        }
        let line = |change| format!("- {}\n", bans_text::line(change));
        Content::Text(changes.iter().map(line).collect())
    }

    /// The connections, as `conntrack -L` prints them.
    fn tracked(&self) -> Content {
        if !self.rules.published().program().tracks() {
            return Content::Nothing;
        }
        let Ok(flows) = self.workers.all_connections() else { return Content::Unlisted };
        Content::Text(flows.iter().map(|flow| format!("{flow}\n")).collect())
    }
}

//! What a run evaluates packets by at this moment, as the files of a host's folder, which `tamis replay` and `tamis why` take.
//!
//! Contract: nothing waits for it but who asks. Rules come with their counters; what cannot be listed is left out, and said.

use rules::ipset::SavedSet;
use serde_json::{Map, Value, json};

use super::clock::now;
use super::live::Live;
use super::status;
use crate::bans_text;

/// What there is for a file.
enum Content {
    /// The run has nothing of it.
    Nothing,
    /// It has, and cannot list it.
    Unlisted,
    /// This.
    Text(String),
}

/// A file of the folder, and how its text is found.
type File = (&'static str, fn(&Live) -> Content);

/// What is there beside rules and wires, if it can be listed.
const LISTED: [File; 3] =
    [("ipset.save", Live::sets), ("bans.txt", Live::bans), ("conntrack.txt", Live::tracked)];

impl Live {
    /// The folder: `tamis.snapshot/1`.
    ///
    /// # Errors
    /// Counters cannot be read now.
    pub(super) fn snapshot(&self) -> Result<Value, String> {
        let snapshot = self.published.snapshot().map_err(|error| error.to_string())?;
        let mut files: Map<String, Value> = status::saved_by_family(&snapshot)
            .map(|(family, text)| (format!("{}.save", family.tool()), text.into()))
            .collect();
        files.insert("wires.txt".to_owned(), self.wires.to_string().into());
        let mut left_out = Vec::new();
        for (name, list) in LISTED {
            match list(self) {
                Content::Nothing => {}
                Content::Unlisted => left_out.push(name),
                Content::Text(text) => drop(files.insert(name.to_owned(), text.into())),
            }
        }
        Ok(json!({
            "schema": "tamis.snapshot/1",
            "program": snapshot.program.number(),
            "files": files,
            "left_out": left_out,
        }))
    }

    /// Its sets, as `ipset save` prints them.
    fn sets(&self) -> Content {
        let shared = self.published.shared();
        let Some(sets) = shared.sets() else { return Content::Nothing };
        let saved = sets.save(None, usize::MAX, now());
        Content::Text(saved.iter().map(SavedSet::text).collect())
    }

    /// The access list, as a file of bans.
    fn bans(&self) -> Content {
        let changes = self.access_list().changes();
        if changes.is_empty() {
            return Content::Nothing;
        }
        let line = |change| format!("- {}\n", bans_text::line(change));
        Content::Text(changes.iter().map(line).collect())
    }

    /// Its connections, as `conntrack -L` prints them.
    fn tracked(&self) -> Content {
        if !self.published.program().tracks() {
            return Content::Nothing;
        }
        let Ok(flows) = self.all_connections() else { return Content::Unlisted };
        Content::Text(flows.iter().map(|flow| format!("{flow}\n")).collect())
    }
}

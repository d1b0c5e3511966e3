//! The database of `-m geoip`: a folder with a file for each country and family.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use host::Geoip;
use pktio::file::{self, LONGEST_TEXT, NamedBy};

use crate::error::Error;

/// The files of a folder that there is, in order.
#[must_use]
pub fn files(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<String> =
        entries.filter(|path| !path.is_dir()).map(|path| path.display().to_string()).collect();
    files.sort();
    files
}

/// Reads a folder; its files lie below it, or below that which it is a part of.
///
/// # Errors
/// One of its files cannot be read, or is no list of ranges; or none is of a country.
pub(super) fn open(folder: &str, root: Option<&Path>) -> Result<Arc<Geoip>, Error> {
    let mut database = Geoip::default();
    let by = NamedBy::Folder(root.unwrap_or(Path::new(folder)));
    for file in files(folder) {
        let name = Path::new(&file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !matches!(name.rsplit_once('.'), Some((_, "iv4" | "iv6"))) {
            continue;
        }
        let bytes = match file::read(Path::new(&file), by, LONGEST_TEXT) {
            Ok(bytes) => bytes,
            Err(source) => return Err(Error::File { file, source }),
        };
        database.take(&name, &bytes).map_err(|what| Error::Read { file, what })?;
    }
    if database.is_empty() {
        let what = " expected a folder of countries, such as DE.iv4 and DE.iv6".to_owned();
        return Err(Error::Read { file: folder.to_owned(), what });
    }
    Ok(Arc::new(database))
}

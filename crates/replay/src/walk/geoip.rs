//! The database of `-m geoip`: a folder with a file for each country and family.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use host::Geoip;

use crate::error::Error;

/// The files of a folder that there is, in order.
#[must_use]
pub fn files(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<String> =
        entries.filter(|path| path.is_file()).map(|path| path.display().to_string()).collect();
    files.sort();
    files
}

/// Reads a folder.
///
/// # Errors
/// One of its files cannot be read, or is no list of ranges; or none is of a country.
pub(super) fn open(folder: &str) -> Result<Arc<Geoip>, Error> {
    let mut database = Geoip::default();
    for file in files(folder) {
        let name = Path::new(&file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !matches!(name.rsplit_once('.'), Some((_, "iv4" | "iv6"))) {
            continue;
        }
        let bytes = match fs::read(&file) {
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

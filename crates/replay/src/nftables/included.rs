//! Files that a file for `nft -f` includes.
//!
//! Contract: they lie below the folder of the file that includes them.

use std::path::{Path, PathBuf};

use pktio::file::{self, NamedBy};

/// Reads the files of an `include`: below the folder of the file that has it, a pattern's in their order.
pub(super) fn files(file: &str, pattern: &str) -> Result<Vec<(String, String)>, String> {
    if file == "-" {
        return Err(format!("cannot include {pattern}: standard input lies in no folder"));
    }
    let folder = Path::new(file)
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let path = folder.join(pattern);
    let last = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_owned();
    let paths = if last.contains(['*', '?']) { matching(&path, &last) } else { vec![path] };
    let read = |path: &PathBuf| {
        let text = file::read_text(path, NamedBy::Folder(folder))
            .map_err(|why| format!("{}: {why}", path.display()))?;
        Ok((path.display().to_string(), text))
    };
    paths.iter().map(read).collect()
}

fn matching(path: &Path, pattern: &str) -> Vec<PathBuf> {
    let entries =
        path.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let fits = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        path.is_file() && !name.starts_with('.') && glob(pattern.as_bytes(), name.as_bytes())
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(fits).collect();
    paths.sort();
    paths
}

/// Says whether a name fits a pattern of `*` and `?`.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if pattern.get(p).is_some_and(|c| *c == b'?' || *c == name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}
